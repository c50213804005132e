/* SPDX-License-Identifier: MIT */
/*
 * A plain reader of saved traces, written from docs/saved-trace.md: what the product's own reader
 * is compared with. It takes the file for well made; anything odd ends the process with a message.
 */
#ifndef FAY_TESTS_QUERY_SAVED_READER_H
#define FAY_TESTS_QUERY_SAVED_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/saved.h"

struct saved_reader {
	uint8_t *bytes; /* the file */
	uint64_t size;
	struct fay_saved_header header;
	struct saved_reader_stream {
		struct fay_saved_stream is;
		const struct fay_saved_column *columns;
	} streams[FAY_SAVED_STREAMS];
	uint64_t at, rows_end; /* of the next row, in the file */
};

void saved_reader_open(struct saved_reader *r, const char *path);
void saved_reader_close(struct saved_reader *r);
/* The next row and the number of its stream; NULL: there are no more. In the reader's memory. */
const uint8_t *saved_reader_next(struct saved_reader *r, uint32_t *stream);
/* A stream's column of that name; NULL: it has none. */
const struct fay_saved_column *saved_reader_column(const struct saved_reader *r, uint32_t stream,
						   const char *name);
/* What a function, or an address by fay_saved_address(), is called, NUL-terminated if `text` has
 * `size` bytes; false: it has no name. */
bool saved_reader_name(const struct saved_reader *r, uint64_t hash, char *text, size_t size);

#endif
