/* SPDX-License-Identifier: MIT */
/* Writing saved traces. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/image.h"
#include "fay/saved.h"

#define BUFFER (1u << 20)

/* Hashes of functions that rows have named; open addressing, 0 is free. */
struct hashes {
	uint64_t *slots;
	size_t count, size;
};

struct fay_save {
	FILE *file;
	struct fay_saved_header header;
	struct fay_saved_column columns[FAY_SAVED_COLUMNS];
	uint32_t function_columns[FAY_SAVED_COLUMNS], function_count; /* offsets in the row */
	struct hashes hashes;
	uint64_t last; /* hash that was seen last */
	bool failed, out_of_memory;
	int failure; /* errno of the first failed write */
};

static void put(struct fay_save *s, const void *bytes, size_t size)
{
	if (s->failed || !size || fwrite(bytes, size, 1, s->file) == 1)
		return;
	s->failed = true;
	s->failure = errno;
}

static bool insert(struct hashes *h, uint64_t hash)
{
	size_t at = (hash * 0x9e3779b97f4a7c15u) >> 20 & (h->size - 1);
	while (h->slots[at] && h->slots[at] != hash)
		at = (at + 1) & (h->size - 1);
	bool added = !h->slots[at];
	h->slots[at] = hash;
	h->count += added;
	return added;
}

static bool grow(struct hashes *h)
{
	struct hashes larger = {.size = h->size ? 2 * h->size : 1024};
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

static void remember(struct fay_save *s, uint64_t hash)
{
	if (!hash || hash == s->last || s->hashes.count == FAY_SAVED_NAMES)
		return;
	s->last = hash;
	if (2 * s->hashes.count >= s->hashes.size && !grow(&s->hashes))
		s->out_of_memory = true;
	else
		insert(&s->hashes, hash);
}

int fay_save_create(const char *path, uint32_t source, const char *text,
		    const struct fay_saved_column *columns, uint32_t column_count,
		    uint32_t row_size, struct fay_save **save, struct fay_error *error)
{
	static const char zeros[8];
	if (!column_count || column_count > FAY_SAVED_COLUMNS || !row_size || row_size % 8 ||
	    row_size > FAY_SAVED_ROW)
		return fay_error_set(error, FAY_E_LIMIT,
				     "rows of %u bytes in %u columns cannot be saved", row_size,
				     column_count);
	struct fay_save *s = calloc(1, sizeof(*s));
	if (!s)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	s->file = fopen(path, "we");
	if (!s->file) {
		fay_error_set(error, FAY_E_USAGE, "cannot write '%s': %s", path, strerror(errno));
		free(s);
		return FAY_E_USAGE;
	}
	setvbuf(s->file, NULL, _IOFBF, BUFFER);
	size_t length = strlen(text), padding = (8 - length % 8) % 8;
	memcpy(s->columns, columns, column_count * sizeof(*columns));
	for (uint32_t i = 0; i < column_count; i++)
		if (columns[i].type == FAY_TYPE_FUNCTION)
			s->function_columns[s->function_count++] = columns[i].offset;
	s->header = (struct fay_saved_header){
		.magic = FAY_SAVED_MAGIC,
		.header_size = sizeof(s->header),
		.column_count = column_count,
		.row_size = row_size,
		.source = source,
		.rows_at = sizeof(s->header) + column_count * sizeof(*columns) + length + padding,
		.row_count = UINT64_MAX,
		.text_size = (uint32_t)length};
	put(s, &s->header, sizeof(s->header));
	put(s, columns, column_count * sizeof(*columns));
	put(s, text, length);
	put(s, zeros, padding);
	s->header.row_count = 0;
	*save = s;
	return FAY_OK;
}

void fay_save_row(struct fay_save *s, const uint8_t *row)
{
	for (uint32_t i = 0; i < s->function_count; i++) {
		uint64_t hash;
		memcpy(&hash, row + s->function_columns[i], sizeof(hash));
		remember(s, hash);
	}
	put(s, row, s->header.row_size);
	s->header.row_count++;
}

static void put_names(struct fay_save *s, fay_save_name_function *name, void *context)
{
	static const char zeros[8];
	s->header.names_at = s->header.rows_at + s->header.row_count * s->header.row_size;
	for (size_t i = 0; i < s->hashes.size; i++) {
		const char *text = s->hashes.slots[i] ? name(context, s->hashes.slots[i]) : NULL;
		if (!text)
			continue;
		struct fay_saved_name one = {.hash = s->hashes.slots[i],
					     .size = (uint32_t)strnlen(text, FAY_SAVED_ROW)};
		put(s, &one, sizeof(one));
		put(s, text, one.size);
		put(s, zeros, (8 - one.size % 8) % 8);
		s->header.name_count++;
	}
}

int fay_save_finish(struct fay_save *s, uint64_t events_lost, fay_save_name_function *name,
		    void *context, struct fay_error *error)
{
	int result = FAY_OK;
	put_names(s, name, context);
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
	if (s->failed)
		result = fay_error_set(error, FAY_E_INTERNAL, "cannot write the saved trace: %s",
				       strerror(s->failure));
	else if (s->out_of_memory)
		result = fay_error_set(
			error, FAY_E_LIMIT,
			"out of memory for the names of functions in the saved trace");
	free(s->hashes.slots);
	free(s);
	return result;
}
