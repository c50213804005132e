/* SPDX-License-Identifier: MIT */
/* Writing saved traces. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/image.h"
#include "fay/saved.h"

#define BUFFER (1u << 20)
/* for one value; in a table that is half full at most only values that were chosen for it take more
 * */
#define STEPS_MAX 1000u
/* that are named in a file: to name one takes a look at each traced process's symbols, and nothing
 * is drained meanwhile */
#define ADDRESSES_MAX 65536u
#define TEXTS_MAX 400000u

/* Hashes of functions that rows have named; open addressing, 0 is free. */
struct hashes {
	uint64_t *slots;
	size_t count, size;
	uint64_t last; /* that was seen last */
};

struct fay_save {
	FILE *file;
	char *path; /* as it was given, for messages */
	struct fay_saved_header header;
	struct stream {
		uint32_t row_size;
		/* offsets in the row */
		uint32_t function_columns[FAY_SAVED_COLUMNS], function_count;
		struct fay_saved_column address_columns[FAY_SAVED_COLUMNS];
		uint32_t address_count;
		uint32_t string_columns[FAY_SAVED_COLUMNS], string_count;
	} streams[FAY_SAVED_STREAMS];
	/* addresses: by fay_saved_address(); texts: low words of their cells */
	struct hashes hashes, addresses, texts;
	bool failed, out_of_memory;
	int failure; /* errno of the first failed write */
};

static void put(struct fay_save *s, const void *bytes, size_t size)
{
	/* one thread writes */
	if (s->failed || !size || fwrite_unlocked(bytes, size, 1, s->file) == 1)
		return;
	s->failed = true;
	s->failure = errno;
}

/* A value for which there is no place near its own is not remembered: it stays without a name. */
static void insert(struct hashes *h, uint64_t hash)
{
	size_t at = (hash * 0x9e3779b97f4a7c15u) >> 20 & (h->size - 1);
	for (unsigned steps = 0; h->slots[at] && h->slots[at] != hash; steps++) {
		if (steps == STEPS_MAX)
			return;
		at = (at + 1) & (h->size - 1);
	}
	h->count += !h->slots[at];
	h->slots[at] = hash;
}

static bool holds(const struct hashes *h, uint64_t hash)
{
	size_t at = (hash * 0x9e3779b97f4a7c15u) >> 20 & (h->size - 1);
	for (unsigned steps = 0; h->size && h->slots[at] && steps <= STEPS_MAX; steps++) {
		if (h->slots[at] == hash)
			return true;
		at = (at + 1) & (h->size - 1);
	}
	return false;
}

static bool grow(struct hashes *h)
{
	struct hashes larger = { .size = h->size ? 2 * h->size : 1024, .last = h->last };
	larger.slots = calloc(larger.size, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < h->size; i++)
		if (h->slots[i])
			insert(&larger, h->slots[i]);
	free(h->slots);
	*h = larger;
	return true;
}

static void remember(struct fay_save *s, struct hashes *h, size_t most, uint64_t hash)
{
	if (!hash || hash == h->last || h->count == most)
		return;
	h->last = hash;
	if (2 * h->count >= h->size && !grow(h))
		s->out_of_memory = true;
	else
		insert(h, hash);
}

static void remember_addresses(struct fay_save *s, const struct fay_saved_column *column,
			       const uint8_t *row)
{
	uint64_t address;
	for (uint32_t at = 0; at < column->size; at += 8) {
		memcpy(&address, row + column->offset + at, sizeof(address));
		if (!address)
			return;
		remember(s, &s->addresses, ADDRESSES_MAX,
			 fay_saved_address(address, !at && !(column->flags & FAY_SAVED_CALLER)));
	}
}

static const char *check_layout(const struct fay_save_layout *layout)
{
	if (!layout->stream_count || layout->stream_count > FAY_SAVED_STREAMS)
		return "this many sources";
	for (uint32_t i = 0; i < layout->stream_count; i++) {
		const struct fay_saved_stream *stream = &layout->streams[i];
		if (!stream->column_count || stream->column_count > FAY_SAVED_COLUMNS)
			return "rows of this many columns";
		if (!stream->row_size || stream->row_size % 8 || stream->row_size > FAY_SAVED_ROW)
			return "rows of this size";
	}
	return NULL;
}

/* Where functions and addresses lie. */
static void find_names(struct stream *s, const struct fay_saved_stream *stream,
		       const struct fay_saved_column *columns)
{
	s->row_size = stream->row_size;
	for (uint32_t i = 0; i < stream->column_count; i++)
		if (columns[i].type == FAY_TYPE_FUNCTION)
			s->function_columns[s->function_count++] = columns[i].offset;
		else if (columns[i].flags)
			s->address_columns[s->address_count++] = columns[i];
		else if (fay_saved_is_string(&columns[i]))
			s->string_columns[s->string_count++] = columns[i].offset;
}

static void put_layout(struct fay_save *s, const struct fay_save_layout *layout)
{
	static const char zeros[8];
	size_t length = strlen(layout->text), padding = (8 - length % 8) % 8;
	uint64_t columns = 0;
	for (uint32_t i = 0; i < layout->stream_count; i++)
		columns += layout->streams[i].column_count;
	s->header = (struct fay_saved_header){
		.magic = FAY_SAVED_MAGIC,
		.header_size = sizeof(s->header),
		.stream_count = layout->stream_count,
		.rows_at = sizeof(s->header) + layout->stream_count * sizeof(*layout->streams) +
			   columns * sizeof(struct fay_saved_column) + length + padding,
		.rows_size = UINT64_MAX,
		.text_size = (uint32_t)length
	};
	put(s, &s->header, sizeof(s->header));
	put(s, layout->streams, layout->stream_count * sizeof(*layout->streams));
	for (uint32_t i = 0; i < layout->stream_count; i++)
		put(s, layout->columns[i],
		    layout->streams[i].column_count * sizeof(struct fay_saved_column));
	put(s, layout->text, length);
	put(s, zeros, padding);
	s->header.rows_size = 0;
}

/* For the owner alone: a trace that root makes holds what is in other users' programs. What is
 * there already keeps its mode and is written over. */
static FILE *create(const char *path)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
	if (!file && descriptor >= 0)
		close(descriptor);
	return file;
}

int fay_save_create(const char *path, const struct fay_save_layout *layout, struct fay_save **save,
		    struct fay_error *error)
{
	const char *wrong = check_layout(layout);
	if (wrong)
		return fay_error_set(error, FAY_E_LIMIT, "%s cannot be saved", wrong);
	struct fay_save *s = calloc(1, sizeof(*s));
	if (!s)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	s->path = strdup(path);
	s->file = s->path ? create(path) : NULL;
	if (!s->file) {
		fay_error_set(error, FAY_E_USAGE, "cannot write '%s': %s", path, strerror(errno));
		free(s->path);
		free(s);
		return FAY_E_USAGE;
	}
	setvbuf(s->file, NULL, _IOFBF, BUFFER);
	for (uint32_t i = 0; i < layout->stream_count; i++)
		find_names(&s->streams[i], &layout->streams[i], layout->columns[i]);
	put_layout(s, layout);
	*save = s;
	return FAY_OK;
}

void fay_save_row(struct fay_save *s, uint32_t stream, const uint8_t *row)
{
	const struct stream *of = &s->streams[stream];
	for (uint32_t i = 0; i < of->function_count; i++) {
		uint64_t hash;
		memcpy(&hash, row + of->function_columns[i], sizeof(hash));
		remember(s, &s->hashes, FAY_SAVED_NAMES / 2, hash);
	}
	for (uint32_t i = 0; i < of->address_count; i++)
		remember_addresses(s, &of->address_columns[i], row);
	for (uint32_t i = 0; i < of->string_count; i++) {
		struct fay_text_cell cell;
		memcpy(&cell, row + of->string_columns[i], sizeof(cell));
		if (cell.high >> 56)
			remember(s, &s->texts, TEXTS_MAX, cell.low);
	}
	if (s->header.stream_count > 1) {
		uint64_t number = stream;
		put(s, &number, sizeof(number));
		s->header.rows_size += sizeof(number);
	}
	put(s, row, of->row_size);
	s->header.rows_size += of->row_size;
	s->header.row_count++;
}

int fay_save_check(const struct fay_save *s, struct fay_error *error)
{
	if (!s->failed)
		return FAY_OK;
	return fay_error_set(
		error, FAY_E_INTERNAL,
		"cannot write '%s': %s; it is truncated, and the events in it can be queried",
		s->path, strerror(s->failure));
}

uint64_t fay_save_size(const struct fay_save *s)
{
	return s->header.rows_at + s->header.rows_size;
}

static void put_name(struct fay_save *s, struct fay_saved_name one, const char *text)
{
	static const char zeros[8];
	put(s, &one, sizeof(one));
	put(s, text, one.size);
	put(s, zeros, (8 - one.size % 8) % 8);
	s->header.name_count++;
}

static void put_plain(struct fay_save *s, uint64_t hash, const char *text)
{
	put_name(s, (struct fay_saved_name){ hash, (uint32_t)strnlen(text, FAY_SAVED_ROW), 0 },
		 text);
}

/* Of the session's texts, those that rows of this file have. */
static void put_text(void *context, struct fay_text_cell cell, struct fay_text_bytes text)
{
	struct fay_save *s = context;
	if (holds(&s->texts, cell.low))
		put_name(s, (struct fay_saved_name){ cell.low, (uint32_t)text.length, 1 },
			 text.bytes);
}

static void put_names(struct fay_save *s, const struct fay_save_names *names)
{
	s->header.names_at = fay_save_size(s);
	for (size_t i = 0; i < s->hashes.size; i++) {
		const char *text = s->hashes.slots[i]
					   ? names->function(names->context, s->hashes.slots[i])
					   : NULL;
		if (text)
			put_plain(s, s->hashes.slots[i], text);
	}
	for (size_t i = 0; i < s->addresses.size; i++) {
		uint64_t key = s->addresses.slots[i], plain = key >> 47;
		bool exact = plain != 0 && plain != UINT64_MAX >> 47;
		char text[FAY_SAVED_ROW + 1];
		if (!key)
			continue;
		names->address(names->context, fay_saved_address(key, exact), exact, text,
			       sizeof(text));
		put_plain(s, key, text);
	}
	if (names->texts)
		fay_texts_each(names->texts, put_text, s);
}

int fay_save_finish(struct fay_save *s, uint64_t events_lost, const struct fay_save_names *names,
		    struct fay_error *error)
{
	int result;
	put_names(s, names);
	s->header.events_lost = events_lost;
	if (!s->failed && fseeko(s->file, 0, SEEK_SET)) {
		s->failed = true;
		s->failure = errno;
	}
	put(s, &s->header, sizeof(s->header));
	if (fclose(s->file) && !s->failed) {
		s->failed = true;
		s->failure = errno;
	}
	result = fay_save_check(s, error);
	if (!result && s->out_of_memory)
		result = fay_error_set(
			error, FAY_E_LIMIT,
			"out of memory for the names of functions in the saved trace");
	free(s->hashes.slots);
	free(s->addresses.slots);
	free(s->texts.slots);
	free(s->path);
	free(s);
	return result;
}
