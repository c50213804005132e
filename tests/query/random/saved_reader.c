/* SPDX-License-Identifier: MIT */
#include "saved_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "the saved trace is not as docs/saved-trace.md says: %s\n", what);
	exit(1);
}

static void read_file(struct saved_reader *r, const char *path)
{
	FILE *file = fopen(path, "r");
	require(file && !fseek(file, 0, SEEK_END), "it cannot be opened");
	r->size = (uint64_t)ftell(file);
	rewind(file);
	r->bytes = malloc(r->size + 1);
	require(r->bytes && fread(r->bytes, 1, r->size, file) == r->size, "it cannot be read");
	fclose(file);
}

/* The header, then the streams, then the columns of each stream in turn. */
void saved_reader_open(struct saved_reader *r, const char *path)
{
	memset(r, 0, sizeof(*r));
	read_file(r, path);
	require(r->size >= sizeof(r->header), "no header");
	memcpy(&r->header, r->bytes, sizeof(r->header));
	require(!memcmp(r->header.magic, "FAYSAVE\2", 8) &&
			r->header.header_size == sizeof(r->header),
		"magic");
	require(r->header.stream_count >= 1 && r->header.stream_count <= FAY_SAVED_STREAMS,
		"streams");
	uint64_t streams = sizeof(r->header),
		 columns = streams + r->header.stream_count * sizeof(struct fay_saved_stream);
	for (uint32_t i = 0; i < r->header.stream_count; i++) {
		struct saved_reader_stream *stream = &r->streams[i];
		memcpy(&stream->is, r->bytes + streams + i * sizeof(stream->is),
		       sizeof(stream->is));
		stream->columns = (const struct fay_saved_column *)(r->bytes + columns);
		columns += stream->is.column_count * sizeof(*stream->columns);
	}
	require(r->header.rows_at >= columns + r->header.text_size && r->header.rows_at <= r->size,
		"where rows begin");
	r->at = r->header.rows_at;
	r->rows_end = r->header.rows_size == UINT64_MAX ? r->size : r->at + r->header.rows_size;
	require(r->rows_end <= r->size, "where rows end");
}

void saved_reader_close(struct saved_reader *r)
{
	free(r->bytes);
}

const uint8_t *saved_reader_next(struct saved_reader *r, uint32_t *stream)
{
	uint64_t number = 0, before = r->header.stream_count > 1 ? sizeof(number) : 0;
	if (r->at + before > r->rows_end)
		return NULL;
	memcpy(&number, r->bytes + r->at, before);
	require(number < r->header.stream_count, "a row's stream");
	uint64_t row = r->at + before, end = row + r->streams[number].is.row_size;
	if (end > r->rows_end) /* of a trace that did not end */
		return NULL;
	r->at = end;
	*stream = (uint32_t)number;
	return r->bytes + row;
}

const struct fay_saved_column *saved_reader_column(const struct saved_reader *r, uint32_t stream,
						   const char *name)
{
	const struct saved_reader_stream *of = &r->streams[stream];
	for (uint32_t i = 0; i < of->is.column_count; i++)
		if (!strcmp(of->columns[i].name, name))
			return &of->columns[i];
	return NULL;
}

bool saved_reader_name(const struct saved_reader *r, uint64_t hash, char *text, size_t size)
{
	uint64_t at = r->header.names_at;
	if (r->header.rows_size == UINT64_MAX)
		return false;
	for (uint64_t i = 0; i < r->header.name_count; i++) {
		struct fay_saved_name name;
		require(at + sizeof(name) <= r->size, "names");
		memcpy(&name, r->bytes + at, sizeof(name));
		at += sizeof(name);
		require(at + name.size <= r->size, "a name");
		if (name.hash == hash) {
			snprintf(text, size, "%.*s", (int)name.size, (const char *)r->bytes + at);
			return true;
		}
		at += (name.size + 7) / 8 * 8;
	}
	return false;
}
