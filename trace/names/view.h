/* SPDX-License-Identifier: MIT */
/* A state of an image as the user sees it: which columns, and what they are called. */
#ifndef FAY_TRACE_VIEW_H
#define FAY_TRACE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "fay/aggregator.h"
#include "fay/query.h"

struct fay_view_column {
	const char *name;
	const struct fay_schema_column *column;
	const struct fay_enumeration *enumeration; /* what its values are called; NULL */
	/* of an enumeration with cases: the column that decides */
	const struct fay_schema_column *by;
	bool address;          /* shown by name: what a call returns to */
	bool symbol;           /* likewise, but of data, or of an instruction itself */
	uint32_t stack_frames; /* so many addresses of code, innermost first; 0: it is no stack */
	bool kernel_stack;
	bool pointer;       /* its numbers are pointers */
	bool maybe_pointer; /* those of them that can be */
	bool nanoseconds;   /* its numbers are spans of time */
	bool orders;        /* rows are ordered by it, before anything else */
	bool is_quantile;
	double quantile; /* which one, if it is one */
};

/* One state of the image as the user sees it. */
struct fay_view {
	uint32_t state;
	const char *title; /* NULL: do not print one */
	bool streams;      /* rows are shown as they come */
	bool ordered;      /* the query says in which order rows are shown */
	uint32_t row_size; /* of the image's state */
	struct fay_view_column *columns;
	/* of columns that the image has not; by the same index */
	struct fay_schema_column *computed;
	uint32_t column_count;
};

#define FAY_PLACE_NAME 8192u  /* of a place in code, for programs to read */
#define FAY_VALUE_NAMES 1024u /* of a value: all names of a set, and what is left over */

/* --- values.c --- */

/* A value as it is, not one that many were merged into. */
bool fay_column_is_plain(const struct fay_schema_column *column);
/* What falls into a histogram's bucket, bounds included. `open`: it has one bound, `low`, and this
 * stands in front of it. */
struct fay_bucket {
	const char *open;
	bool is_signed;
	uint64_t low, high;
};
struct fay_bucket fay_bucket_of(const struct fay_schema_column *column, size_t bucket,
				size_t count);
/* Its bounds as text. */
void fay_bucket_label(const struct fay_schema_column *column, size_t bucket, size_t count,
		      char label[64]);
/* A string as it is shown: one that was cut ends with "...", which the table has behind it.
 * `texts`: what long ones stand for; NULL: there are none. */
struct fay_text_bytes fay_view_string(const struct fay_texts *texts,
				      const struct fay_view_column *view, const uint8_t *row,
				      const struct fay_value *value);
/* What a value of the column in a row is called, `O_WRONLY|O_CREAT|0x40`; NULL: it is a number. */
const char *fay_view_name(const struct fay_view_column *view, const uint8_t *row, int64_t value,
			  char text[FAY_VALUE_NAMES]);
/* How many frames the stack has, and the address of one. */
uint32_t fay_view_stack_depth(const struct fay_view_column *view, const uint8_t *row);
uint64_t fay_view_address(const struct fay_view_column *view, const uint8_t *row, uint32_t frame);

#endif
