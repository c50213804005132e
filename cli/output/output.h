/* SPDX-License-Identifier: MIT */
/*
 * Results on standard output: the writers of tables, on a terminal as live pictures, and of what
 * other programs read. formats.c has the table of them.
 */
#ifndef FAY_CLI_OUTPUT_H
#define FAY_CLI_OUTPUT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fay/query.h"
#include "trace/names/names.h"
#include "trace/names/view.h"

enum fay_format {
	FAY_FORMAT_TABLE,
	FAY_FORMAT_JSON,
	FAY_FORMAT_CSV,
	FAY_FORMAT_FOLDED,
	FAY_FORMAT_FLAME, /* a page */
	FAY_FORMAT_OPENMETRICS,
	FAY_FORMAT_CHROME, /* events for Chrome's trace viewer, Perfetto */
	FAY_FORMAT_PPROF,  /* stacks */
	FAY_FORMAT_OTLP,   /* OpenTelemetry */
	FAY_FORMAT_HTML,   /* a page of tables, histograms, heat maps, or with a flame graph */
	FAY_FORMAT_SVG,    /* the same but flame graphs, as one picture */
	FAY_FORMATS,
};

struct fay_writer;
/* What one format is, and how it is written. */
struct fay_format_kind {
	const char *name;
	/* only one result of groups, neither rows of events nor windows; only rows with a time;
	 * either that result, or rows with a time and a span of time */
	enum { FAY_SHOWS_ALL, FAY_SHOWS_GROUPS, FAY_SHOWS_EVENTS, FAY_SHOWS_SPANS } shows;
	const char *hint; /* what to ask instead */
	bool stack;       /* it shows stacks: the result must have one */
	bool binary;      /* it is not for terminals */
	/* NULL: nothing is written then */
	void (*schema)(struct fay_writer *writer, const struct fay_view *views, size_t count);
	void (*result)(struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, bool final);
	void (*row)(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row);
	void (*end)(struct fay_writer *writer, bool final); /* of all results of one moment */
	void (*close)(struct fay_writer *writer);
};
/* By enum fay_format. */
extern const struct fay_format_kind fay_formats[FAY_FORMATS];
/* FAY_FORMATS: there is none of that name. */
enum fay_format fay_format_find(const char *name);

typedef const char *fay_name_function(void *context, uint64_t hash);
typedef void fay_address_function(void *context, uint64_t address, unsigned form, char *text,
				  size_t size);

/* Which buckets of a histogram a heat map shows; `end` 0: none yet. */
struct fay_heat {
	size_t first, end, buckets; /* buckets: of the histogram */
};

#define FAY_LIVE_LINES 1024u
#define FAY_STREAM_COLUMNS 128u

struct fay_writer {
	FILE *out;
	enum fay_format format;
	const char *query;   /* that is shown, of fay_write_schema() */
	const char *note;    /* of a flame graph: what its numbers lack; NULL */
	const char *before;  /* folded stacks that a flame graph is compared with; NULL */
	const char *metrics; /* of OpenMetrics: names begin with it; NULL: with `fay` */
	bool revocable;      /* likewise: numbers may become smaller, so none is a counter */
	bool live;           /* a terminal: redraw in place */
	/* live.c */
	/* where a picture goes that is being made, while `out` is memory; NULL: none is */
	FILE *screen;
	char *picture;                /* that memory */
	size_t picture_size, view_at; /* view_at: where the last view begins in it */
	bool limited;                 /* it is cut to the terminal's size */
	bool headed;                  /* over pictures that are, stands `head` */
	char head[200];
	unsigned lines_left; /* that views which come may take */
	size_t views_left;
	unsigned lines_drawn; /* of the last picture; how many columns each has */
	uint16_t drawn[FAY_LIVE_LINES];
	bool header_written;   /* of a stream or of CSV */
	int64_t since;         /* of Chrome's times, of OTLP's metrics, ns since the epoch */
	uint64_t spans;        /* of OTLP, by now; of Chrome's those that overlap others */
	struct fay_nest *nest; /* of Chrome's spans; NULL: none was written */
	struct fay_page *page; /* of a page, what is shown by now */
	bool flame;            /* the page is a flame graph, and is written */
	bool marks_cut;        /* folded stacks that may go on say so, outermost */
	bool revised;          /* rows were shown before, with other values */
	bool raw;              /* tables have numbers as they are, without units */
	/* histograms of a table are lines of a heat map; of rows that come one by one they are in
	 * any case */
	bool heat_map;
	int widths[FAY_STREAM_COLUMNS], used; /* likewise: of the columns by now, and of all */
	struct fay_heat heat;                 /* of rows that come one by one */
	const struct fay_texts *texts; /* what long strings in rows stand for; NULL: none do */
	fay_name_function *function_name;
	/* functions that were not traced all the time, by their hashes, ascending: tables mark them
	 */
	const uint64_t *left_out;
	size_t left_out_count;
	void *name_context;
	fay_address_function *address_name; /* NULL: addresses are shown as numbers */
};

/* The order of writer->left_out, for qsort(3). */
int fay_output_by_hash(const void *a, const void *b);
void fay_write_schema(struct fay_writer *writer, const char *query, const struct fay_view *views,
		      size_t count);
/* One picture of the result of one view; `final` marks the last. */
void fay_write_result(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final);
void fay_write_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row);
/* Text of a page. */
void fay_write_html(FILE *out, const char *text);
/* A page of folded stacks, compared with others if they are not NULL; cuts both texts into pieces.
 * `about`: what their numbers are.
 * false: memory is short, and stacks are missing. */
bool fay_flame_page(FILE *out, const char *query, const char *about, char *folded, char *before);
/* All views of that moment were written. */
void fay_write_end(struct fay_writer *writer, bool final);
/* Nothing more comes. */
void fay_write_close(struct fay_writer *writer);
/* Whether some column is a time, as FAY_SHOWS_EVENTS asks. */
bool fay_output_has_time(const struct fay_view *view);
/* And another a span of time, as FAY_SHOWS_SPANS asks of rows. */
bool fay_output_has_span(const struct fay_view *view);
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

#endif
