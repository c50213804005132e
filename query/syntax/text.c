/* SPDX-License-Identifier: MIT */
/*
 * The query's memory and its one error message.
 *
 * Messages show the source line with a caret under the culprit. The text may hold any bytes, so
 * what is echoed is cleaned: control characters and malformed UTF-8 become '?', a long line is cut
 * to a window around the caret. Columns count characters (code points), not bytes.
 */
#include "syntax.h"

#include "fay/bpf.h"
#include "fay/extension.h"
#include "query/debug/debug.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 16384u
#define WINDOW 96u /* characters of a source line that are shown */

struct fay_query_block {
	struct fay_query_block *next;
	size_t used, size;
	_Alignas(16) unsigned char bytes[];
};

struct fay_query *fay_query_create(const char *text, uint64_t now, struct fay_error *error)
{
	size_t size = strnlen(text, FAY_QUERY_MAX_TEXT + 1);
	if (size > FAY_QUERY_MAX_TEXT) {
		fay_error_set(error, FAY_E_LIMIT, "query: the text is longer than %u bytes",
			      FAY_QUERY_MAX_TEXT);
		return NULL;
	}
	struct fay_query *query = calloc(1, sizeof(*query));
	char *copy = malloc(size + 1);
	if (!query || !copy) {
		free(query);
		free(copy);
		fay_error_set(error, FAY_E_LIMIT, "query: out of memory");
		return NULL;
	}
	memcpy(copy, text, size);
	copy[size] = '\0';
	query->text = copy;
	query->size = (uint32_t)size;
	query->now = now;
	query->error = error;
	return query;
}

void fay_query_destroy(struct fay_query *query)
{
	if (!query)
		return;
	for (struct fay_query_block *block = query->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	for (unsigned i = 0; i < query->opened_count; i++)
		fay_saved_close(query->opened[i]);
	fay_btf_close(query->btf);
	for (uint32_t i = 0; i < query->function_count; i++)
		fay_debug_function_close(query->functions[i]);
	for (uint32_t i = 0; i < query->extension_count; i++)
		fay_extension_close(query->extensions[i].code);
	free(query->text);
	free(query);
}

void *fay_query_alloc(struct fay_query *query, size_t size)
{
	size = (size + 15) & ~(size_t)15;
	struct fay_query_block *block = query->blocks;
	if (!block || block->size - block->used < size) {
		size_t block_size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		block = NULL;
		if (query->allocated + block_size <= FAY_QUERY_MAX_MEMORY)
			block = calloc(1, sizeof(*block) + block_size);
		if (!block) {
			query->failed = true;
			fay_error_set(query->error, FAY_E_LIMIT,
				      "query: it needs more memory than allowed");
			return NULL;
		}
		query->allocated += block_size;
		block->size = block_size;
		block->next = query->blocks;
		query->blocks = block;
	}
	void *memory = block->bytes + block->used;
	block->used += size;
	return memory;
}

char *fay_query_copy(struct fay_query *query, const char *bytes, size_t size)
{
	char *copy = fay_query_alloc(query, size + 1);
	if (copy && size)
		memcpy(copy, bytes, size);
	return copy;
}

char *fay_query_format(struct fay_query *query, const char *format, ...)
{
	char buffer[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(buffer, sizeof(buffer), format, args);
	va_end(args);
	return fay_query_copy(query, buffer, strlen(buffer));
}

/* Bytes of the well-formed, printable UTF-8 character at `at`, or 0. */
static unsigned character_length(const unsigned char *at, size_t available)
{
	if (at[0] >= 0x20 && at[0] < 0x7f)
		return 1;
	unsigned length = at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
			  : at[0] >= 0xe0                ? 3
			  : at[0] >= 0xc3                ? 2
					  /* c2 80..9f are control characters */
					  : 0;
	if (at[0] == 0xc2 && available > 1 && at[1] >= 0xa0 && at[1] <= 0xbf)
		return 2;
	if (at[0] > 0xf4 || !length || length > available)
		return 0;
	for (unsigned i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

/* Where a span lies: its line's bounds, and line and column from 1. */
struct place {
	uint32_t line_start, line_end;
	unsigned line, column, width; /* in characters */
};

static unsigned count_characters(const char *text, uint32_t from, uint32_t to)
{
	unsigned count = 0;
	while (from < to) {
		unsigned length = character_length((const unsigned char *)text + from, to - from);
		from += length ? length : 1;
		count++;
	}
	return count;
}

static struct place find_place(const struct fay_query *query, struct fay_span span)
{
	struct place place = { .line = 1 };
	uint32_t start = span.start < query->size ? span.start : query->size;
	for (uint32_t i = 0; i < start; i++) {
		if (query->text[i] == '\n') {
			place.line++;
			place.line_start = i + 1;
		}
	}
	place.line_end = place.line_start;
	while (place.line_end < query->size && query->text[place.line_end] != '\n')
		place.line_end++;
	uint32_t end = span.end < place.line_end ? span.end : place.line_end;
	place.column = count_characters(query->text, place.line_start, start) + 1;
	place.width = end > start ? count_characters(query->text, start, end) : 1;
	return place;
}

/* A bounded text that quietly stops when full. */
struct sink {
	char *bytes;
	size_t used, size;
};

static void sink_add(struct sink *sink, const char *bytes, size_t count)
{
	if (sink->used + count < sink->size) {
		memcpy(sink->bytes + sink->used, bytes, count);
		sink->used += count;
		sink->bytes[sink->used] = '\0';
	} else {
		sink->size = 0; /* nothing more: no half characters, no gaps */
	}
}

static void show_source(struct sink *sink, const struct fay_query *query, struct place place)
{
	unsigned first = place.column > WINDOW * 2 / 3 ? place.column - WINDOW / 3 : 1;
	unsigned column = 1;
	sink_add(sink, "\n    ", 5);
	if (first > 1)
		sink_add(sink, "...", 3);
	for (uint32_t at = place.line_start; at < place.line_end && column < first + WINDOW;
	     column++) {
		unsigned length = character_length((const unsigned char *)query->text + at,
						   place.line_end - at);
		if (column >= first) {
			char raw = query->text[at];
			if (length)
				sink_add(sink, query->text + at, length);
			else if (raw != '\r')
				sink_add(sink, raw == '\t' ? " " : "?", 1);
		}
		at += length ? length : 1;
	}
	sink_add(sink, "\n    ", 5);
	if (first > 1)
		sink_add(sink, "   ", 3);
	for (unsigned i = first; i < place.column; i++)
		sink_add(sink, " ", 1);
	sink_add(sink, "^", 1);
	for (unsigned i = 1; i < place.width && place.column + i < first + WINDOW; i++)
		sink_add(sink, "~", 1);
}

int fay_query_error_at(const struct fay_query *query, struct fay_error *error,
		       enum fay_error_code code, struct fay_span span, const char *message)
{
	struct place place = find_place(query, span);
	fay_error_set(error, code, "query:%u:%u: %s", place.line, place.column, message);
	struct sink sink = { error->message, strlen(error->message), sizeof(error->message) };
	show_source(&sink, query, place);
	return (int)code;
}

void *fay_query_fail(struct fay_query *query, enum fay_error_code code, struct fay_span span,
		     const char *format, ...)
{
	if (query->failed)
		return NULL;
	query->failed = true;
	if (query->options && query->options->part)
		query->options->part(query->options->part_context, span.start, span.end, NULL);
	if (!query->error)
		return NULL;
	char message[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	fay_query_error_at(query, query->error, code, span, message);
	return NULL;
}
