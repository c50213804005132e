/* SPDX-License-Identifier: MIT */
/*
 * Saved traces: rows of events in a file, with what their columns are and the names of their
 * functions. docs/saved-trace.md is the format. Written by `fay trace --save`, read by queries over
 * file("NAME") and by `fay export`. A file may come from anybody: every length and offset is
 * checked.
 */
#ifndef FAY_SAVED_H
#define FAY_SAVED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"
#include "fay/image.h"
#include "fay/text.h"

#define FAY_SAVED_MAGIC "FAYSAVE\2"
#define FAY_SAVED_NAME 64u    /* bytes of a column's name, NUL included */
#define FAY_SAVED_COLUMNS 64u /* of a stream */
#define FAY_SAVED_STREAMS 4u
#define FAY_SAVED_PATTERN 256u /* bytes, NUL included */
#define FAY_SAVED_ROW 4096u    /* bytes */
#define FAY_SAVED_NAMES 1000000u

/*
 * As it lies in the file, little-endian: the header, the streams, the columns of each stream in
 * turn, the query's text, rows, names. If there are several streams, the number of a row's stream
 * stands before it, in 8 bytes.
 */
struct fay_saved_header {
	char magic[8];
	uint32_t header_size, stream_count;
	/* bytes, of rows_at from the start. rows_size: UINT64_MAX if the trace did not end: all
	 * that follows */
	uint64_t rows_at, rows_size;
	uint64_t row_count; /* of all streams; 0 if the trace did not end */
	uint64_t names_at, name_count;
	uint64_t events_lost;
	uint32_t text_size, reserved;
};
/* Events of one source. */
struct fay_saved_stream {
	uint32_t source; /* what they are, enum fay_source */
	uint32_t flags;
	uint32_t column_count, row_size; /* bytes, a multiple of 8 */
	/* as the query had it, such as "libc!read"; bytes that cannot be shown are read as `?` */
	char pattern[FAY_SAVED_PATTERN];
};
#define FAY_SAVED_OF_KERNEL 1u /* flags: the events are the kernel's */
struct fay_saved_column {
	char name[FAY_SAVED_NAME]; /* UTF-8 that can be shown as it is, without `"` and `\` */
	uint32_t type, offset, size, flags; /* enum fay_column_type; bytes */
};
/* flags: the words are addresses of code, whose names are saved */
#define FAY_SAVED_STACK 1u        /* of a stack, the innermost first, zeros behind the last one */
#define FAY_SAVED_KERNEL_STACK 2u /* the same of the kernel's code */
#define FAY_SAVED_CALLER 4u       /* what a call returns to */

/* What an address is called is saved under this in place of a function's hash. An instruction's own
 * (exact) and what a call returns to are two things; no address of code has these bits. */
#define FAY_SAVED_EXACT UINT64_C(0x5a5a000000000000)
static inline uint64_t fay_saved_address(uint64_t address, bool exact)
{
	return exact ? address ^ FAY_SAVED_EXACT : address;
}
/* Names of functions and of addresses, and texts of long strings, under the low words of their
 * cells: this, then `size` bytes and zeros up to a multiple of 8 */
struct fay_saved_name {
	uint64_t hash;
	uint32_t size;
	uint32_t is_text; /* 1: of a string, else a name */
};

struct fay_saved; /* one that is read */

/* FAY_E_USAGE: there is no such file; FAY_E_REFUSED: it is no saved trace, or damaged. */
int fay_saved_open(const char *path, struct fay_saved **saved, struct fay_error *error);
void fay_saved_close(struct fay_saved *saved);
/* Whether an open file is the one that is read. */
bool fay_saved_is(const struct fay_saved *saved, int descriptor);
/* row_count of a trace that did not end: the rows that there are if there is one stream, else as
 * many as there may be. */
const struct fay_saved_header *fay_saved_header(const struct fay_saved *saved);
const struct fay_saved_stream *fay_saved_stream_at(const struct fay_saved *saved, uint32_t stream);
const struct fay_saved_column *fay_saved_column_at(const struct fay_saved *saved, uint32_t stream,
						   uint32_t index);
/* Only rows of that stream are read from now on. Before: of all streams. */
void fay_saved_select(struct fay_saved *saved, uint32_t stream);
/* Of the selected stream, else of the first one. */
uint32_t fay_saved_selected(const struct fay_saved *saved);
/* The selected stream's column of that name, or NULL. */
const struct fay_saved_column *fay_saved_column(const struct fay_saved *saved, const char *name);
/* Of the selected stream, only rows of functions whose name matches the glob are read. Returns how
 * many names do; 0, too, if the stream has no `function`. */
size_t fay_saved_only(struct fay_saved *saved, const char *glob);
/* A function's name by its hash, or NULL. */
const char *fay_saved_name(const struct fay_saved *saved, uint64_t hash);
/* What a string's cell says. Valid as long as the cell and the saved trace. */
struct fay_text_bytes fay_saved_text(const struct fay_saved *saved, const uint8_t *cell);
/* Whether the column is a string. */
static inline bool fay_saved_is_string(const struct fay_saved_column *column)
{
	return column->type == FAY_TYPE_STRING && !column->flags && column->size == FAY_TEXT_CELL;
}
/* The next row, valid until the next call, or NULL: there are no more, or the file cannot be read
 * (*error is set then; code 0 else). */
const uint8_t *fay_saved_next(struct fay_saved *saved, struct fay_error *error);
/* Whether the file was not written to its end: fay was killed, or the disk became full. Functions
 * have no names then, and the last row may be missing. */
bool fay_saved_cut_off(const struct fay_saved *saved);
/* fay_saved_next() returns NULL, with code 0, once *stop is set. */
void fay_saved_stop_on(struct fay_saved *saved, const volatile sig_atomic_t *stop);
/* Rows that were read, or passed over, so far. */
uint64_t fay_saved_rows_read(const struct fay_saved *saved);
/* The stream of the row that was read last. */
uint32_t fay_saved_row_stream(const struct fay_saved *saved);

struct fay_save; /* one that is written */

/* What is saved: streams with all members, and their columns with name, type, offset and size. */
struct fay_save_layout {
	const char *text; /* the query */
	uint32_t stream_count;
	struct fay_saved_stream streams[FAY_SAVED_STREAMS];
	struct fay_saved_column columns[FAY_SAVED_STREAMS][FAY_SAVED_COLUMNS];
};
/* The file is made anew, for its owner alone; one that is there keeps its mode, and a symbolic link
 * is followed. */
int fay_save_create(const char *path, const struct fay_save_layout *layout, struct fay_save **save,
		    struct fay_error *error);
/* Errors are kept for fay_save_check() and fay_save_finish(). */
void fay_save_row(struct fay_save *save, uint32_t stream, const uint8_t *row);
/* FAY_E_INTERNAL: a write has failed (a full disk, for one), and nothing is written from then on.
 * */
int fay_save_check(const struct fay_save *save, struct fay_error *error);
/* Bytes of the file so far. */
uint64_t fay_save_size(const struct fay_save *save);
/* What things in rows are called. */
struct fay_save_names {
	const char *(*function)(void *context, uint64_t hash); /* NULL: it is not known */
	void (*address)(void *context, uint64_t address, bool exact, char *text, size_t size);
	void *context;
	const struct fay_texts *texts; /* NULL: no string is long */
};
/* Names of all values in columns of functions and addresses, and what the header says at the end.
 * Closes the file in any case. */
int fay_save_finish(struct fay_save *save, uint64_t events_lost, const struct fay_save_names *names,
		    struct fay_error *error);

#endif
