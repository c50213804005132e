/* SPDX-License-Identifier: MIT */
/*
 * Saved traces: rows of events in a file, with what their columns are and the names of their functions. docs/saved-trace.md is the format. Written by `fay trace --save`,
 * read by queries over file("NAME"). A file may come from anybody: every length and offset is checked.
 */
#ifndef FAY_SAVED_H
#define FAY_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"

#define FAY_SAVED_MAGIC "FAYSAVE\1"
#define FAY_SAVED_NAME 64u      /* bytes of a column's name, NUL included */
#define FAY_SAVED_COLUMNS 64u
#define FAY_SAVED_ROW 4096u     /* bytes */
#define FAY_SAVED_NAMES 1000000u

/* As it lies in the file, little-endian. Columns follow the header, then the query's text, then rows, then names. */
struct fay_saved_header {
	char magic[8];
	uint32_t header_size, column_count, row_size, source; /* source: what the events are, enum fay_source */
	uint64_t rows_at, row_count; /* bytes from the start. row_count: UINT64_MAX if the trace did not end: as many as there are */
	uint64_t names_at, name_count;
	uint64_t events_lost;
	uint32_t text_size, reserved;
};
struct fay_saved_column {
	char name[FAY_SAVED_NAME];
	uint32_t type, offset, size, reserved; /* enum fay_column_type; bytes */
};
/* names: this, then `size` bytes and zeros up to a multiple of 8 */
struct fay_saved_name {
	uint64_t hash;
	uint32_t size, reserved;
};

struct fay_saved; /* one that is read */

/* FAY_E_USAGE: there is no such file; FAY_E_REFUSED: it is no saved trace, or damaged. */
int fay_saved_open(const char *path, struct fay_saved **saved, struct fay_error *error);
void fay_saved_close(struct fay_saved *saved);
const struct fay_saved_header *fay_saved_header(const struct fay_saved *saved);
const struct fay_saved_column *fay_saved_column_at(const struct fay_saved *saved, uint32_t index);
/* The column of that name, or NULL. */
const struct fay_saved_column *fay_saved_column(const struct fay_saved *saved, const char *name);
/* A function's name by its hash, or NULL. */
const char *fay_saved_name(const struct fay_saved *saved, uint64_t hash);
/* The next row, valid until the next call, or NULL: there are no more, or the file cannot be read (*error is set then; code 0 else). */
const uint8_t *fay_saved_next(struct fay_saved *saved, struct fay_error *error);

struct fay_save; /* one that is written */

/* columns with name, type, offset and size. The file is made anew. */
int fay_save_create(const char *path, uint32_t source, const char *text, const struct fay_saved_column *columns, uint32_t column_count, uint32_t row_size,
		    struct fay_save **save, struct fay_error *error);
/* Errors are kept for fay_save_finish(). */
void fay_save_row(struct fay_save *save, const uint8_t *row);
typedef const char *fay_save_name_function(void *context, uint64_t hash);
/* Names of all values in columns of functions, and what the header says at the end. Closes the file in any case. */
int fay_save_finish(struct fay_save *save, uint64_t events_lost, fay_save_name_function *name, void *context, struct fay_error *error);

#endif
