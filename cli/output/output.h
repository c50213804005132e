/* SPDX-License-Identifier: MIT */
/*
 * Results on standard output: what a view of a state is, and the writers of tables, JSON, CSV and
 * folded stacks, on a terminal as live pictures; how names and places in code are written.
 */
#ifndef FAY_CLI_OUTPUT_H
#define FAY_CLI_OUTPUT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fay/aggregator.h"
#include "fay/query.h"
#include "process/process.h"

enum fay_format { FAY_FORMAT_TABLE, FAY_FORMAT_JSON, FAY_FORMAT_CSV, FAY_FORMAT_FOLDED };

struct fay_view_column {
	const char *name;
	const struct fay_schema_column *column;
	const struct fay_enumeration *enumeration; /* what its values are called; NULL */
	bool address;                              /* of code: shown by name */
	uint32_t stack_frames; /* so many addresses of code, innermost first; 0: it is no stack */
	bool kernel_stack;
	bool nanoseconds; /* its numbers are spans of time */
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

typedef const char *fay_name_function(void *context, uint64_t hash);
typedef void fay_address_function(void *context, uint64_t address, unsigned form, char *text,
				  size_t size);

/* Which buckets of a histogram a heat map shows; `end` 0: none yet. */
struct fay_heat {
	size_t first, end, buckets; /* buckets: of the histogram */
};

#define FAY_LIVE_LINES 1024u

struct fay_writer {
	FILE *out;
	enum fay_format format;
	bool live; /* a terminal: redraw in place */
	/* live.c */
	/* where a picture goes that is being made, while `out` is memory; NULL: none is */
	FILE *screen;
	char *picture;                /* that memory */
	size_t picture_size, view_at; /* view_at: where the last view begins in it */
	bool limited;                 /* it is cut to the terminal's size */
	unsigned lines_left;          /* that views which come may take */
	size_t views_left;
	unsigned lines_drawn; /* of the last picture; how many columns each has */
	uint16_t drawn[FAY_LIVE_LINES];
	bool header_written; /* of a stream or of CSV */
	bool revised;        /* rows were shown before, with other values */
	bool raw;            /* tables have numbers as they are, without units */
	/* histograms of a table are lines of a heat map; of rows that come one by one they are in
	 * any case */
	bool heat_map;
	struct fay_heat heat;          /* of rows that come one by one */
	const struct fay_texts *texts; /* what long strings in rows stand for; NULL: none do */
	fay_name_function *function_name;
	void *name_context;
	fay_address_function *address_name; /* NULL: addresses are shown as numbers */
};

void fay_write_schema(struct fay_writer *writer, const char *query, const struct fay_view *views,
		      size_t count);
/* One picture of the result of one view; `final` marks the last. */
void fay_write_result(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final);
void fay_write_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row);
/*
 * The results of so many views that are written between these are one picture, drawn over the last
 * one if the output is a terminal. `final`: it is printed whole, and stays. Between them
 * writer->out is not the terminal.
 */
void fay_live_begin(struct fay_writer *writer, size_t views, bool final);
void fay_live_end(struct fay_writer *writer);
/* Clears the picture, if the terminal shows this writer's: something else is written there, and it
 * is to be drawn below. */
void fay_live_clear(struct fay_writer *writer);
/* The terminal has another size, or a message took the picture's place: it is to be drawn. Set by
 * whoever takes SIGWINCH, too. */
extern volatile sig_atomic_t fay_live_due;

/*
 * A C++ or Rust function's name as people write it, without its arguments, or the name itself;
 * readable.c. Cut to `size` with "..."; lives as long as `buffer` and `name`.
 */
const char *fay_cli_readable(const char *name, char *buffer, size_t size);
/* The same with its arguments. */
const char *fay_cli_signature(const char *name, char *buffer, size_t size);

/* --- address_names.c --- */

/* "libc!qsort+0x1c", or "0x7f..." */
void fay_cli_address_name(struct fay_addresses *addresses, uint64_t address, unsigned form,
			  char *text, size_t size);

/* Likewise of what a machine of a cluster said of a place in code (docs/cluster.md, PARTIAL);
 * `code` NULL: it said nothing of this hash. */
void fay_cli_code_name(const char *code, uint64_t hash, unsigned form, char *text, size_t size);

/* --- dispatch.c --- */

/* A line for each probe of an accepted image. */
void fay_cli_print_dispatch(FILE *out, const char *indent, const struct fay_verdict *verdict);
/* The same as JSON objects. */
void fay_cli_print_dispatch_json(FILE *out, const struct fay_verdict *verdict);
/* What would be done to the functions of a process, which stays as it is: one line, or a JSON
 * object for each function. `traps`: the kernel may trap where no jump fits. */
void fay_cli_print_points(FILE *out, bool json, pid_t pid, const struct fay_verdict *verdict,
			  bool traps);

#endif
