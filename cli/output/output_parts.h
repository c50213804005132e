/* SPDX-License-Identifier: MIT */
/* Shared by the files that write results: those of formats.c's table, and what they share: values.c
 * (single values), stack.c (stacks). */
#ifndef FAY_CLI_OUTPUT_PARTS_H
#define FAY_CLI_OUTPUT_PARTS_H

#include "output.h"

/* bytes of a table's cell, NUL included: what is longer ends with `...` */
#define CELL_SIZE 128
#define FAY_OUTPUT_NAME FAY_PLACE_NAME

/* The inclusive lower and upper bound of a histogram's bucket, as text. */
void fay_output_bucket_label(const struct fay_writer *writer, const struct fay_view_column *view,
			     size_t bucket, size_t count, char label[64]);
/* A value as text, whole, whatever its bytes are; of a stack its innermost frame, of a histogram in
 * tables how many values it has. */
void fay_output_put_value(FILE *out, const struct fay_writer *writer,
			  const struct fay_view_column *view, const uint8_t *row);
/* The same for a table's cell: cut, and without what would command the terminal. */
void fay_output_format_value(const struct fay_writer *writer, const struct fay_view_column *view,
			     const uint8_t *row, char *text, size_t size);
/* Whether it is among writer->left_out. */
bool fay_output_is_left_out(const struct fay_writer *writer, uint64_t function);
void fay_output_json_value(const struct fay_writer *writer, const struct fay_view_column *view,
			   const uint8_t *row);

/* --- the formats, as struct fay_format_kind has them --- */

void fay_output_table(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final);
void fay_output_table_row(struct fay_writer *writer, const struct fay_view *view,
			  const uint8_t *row);

void fay_output_json_schema(struct fay_writer *writer, const struct fay_view *views, size_t count);
void fay_output_json(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final);
void fay_output_json_row(struct fay_writer *writer, const struct fay_view *view,
			 const uint8_t *row);

void fay_output_csv(struct fay_writer *writer, const struct fay_view *view,
		    const struct fay_result *result, bool final);
void fay_output_csv_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row);

/* Rows as lines "outermost;...;innermost COUNT", equal ones added up: what makes flame graphs. */
void fay_output_folded(struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, bool final);
void fay_output_folded_row(struct fay_writer *writer, const struct fay_view *view,
			   const uint8_t *row);
/* The column that gives their counts, the first number that is no key; NULL: there is none. */
const struct fay_view_column *fay_output_folded_column(const struct fay_view *view,
						       const struct fay_result *result);
/* The same as a page with a flame graph. */
void fay_output_flame(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final);

/* A page of what comes until it is closed; fay_output_html: a flame graph if there are stacks. */
void fay_output_page(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final);
void fay_output_page_row(struct fay_writer *writer, const struct fay_view *view,
			 const uint8_t *row);
void fay_output_html(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final);
void fay_output_page_close(struct fay_writer *writer);

/* --- table.c --- */

/* Numbers are at the right of their columns. */
bool fay_output_is_numeric(const struct fay_view_column *column);
/* The column that bars are drawn for: of groups the number by which the query orders them, else the
 * first COUNT; -1: none. It goes by the query alone, never by the rows. Its value, of which less
 * than 0 is 0. */
int fay_output_bar_column(const struct fay_view *view);
uint64_t fay_output_bar_value(const struct fay_view *view, int column, const uint8_t *row);

/* What columns of events are to those that show them in time: the first time, span of time,
 * function or named number, `pid`, `tid`; NULL: there is none. */
struct fay_event_columns {
	const struct fay_view_column *time, *span, *name, *pid, *tid;
};
struct fay_event_columns fay_output_event_columns(const struct fay_view *view);
/* 0: no column, or no whole number. */
int64_t fay_output_whole(const struct fay_view_column *column, const uint8_t *row);
/* A string of JSON. */
void fay_output_event_name(struct fay_writer *writer, const struct fay_view_column *column,
			   const uint8_t *row);

/* --- nest.c: which spans of time nest --- */

struct fay_nest;
/* NULL: no memory. */
struct fay_nest *fay_output_nest_create(void);
void fay_output_nest_free(struct fay_nest *nest);
/* The span nests with all that came before of that track, perhaps moved by a nanosecond; false: it
 * does not, and is as if it had not come. */
bool fay_output_nest(struct fay_nest *nest, int64_t pid, int64_t tid, int64_t *begin, int64_t *end);

/* The array of Chrome's Trace Event Format. */
void fay_output_chrome(struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, bool final);
void fay_output_chrome_row(struct fay_writer *writer, const struct fay_view *view,
			   const uint8_t *row);
void fay_output_chrome_close(struct fay_writer *writer);

/* profile.proto, as gzip. */
void fay_output_pprof(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final);

/* Samples by the text format of OpenMetrics 1.0; each picture is whole, and ends with # EOF. */
void fay_output_openmetrics(struct fay_writer *writer, const struct fay_view *view,
			    const struct fay_result *result, bool final);
void fay_output_openmetrics_end(struct fay_writer *writer, bool final);

/* Requests of OTLP, a line of JSON each: metrics, or spans of events with a span of time. */
void fay_output_otlp_schema(struct fay_writer *writer, const struct fay_view *views, size_t count);
void fay_output_otlp(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final);
void fay_output_otlp_row(struct fay_writer *writer, const struct fay_view *view,
			 const uint8_t *row);

/* --- histogram.c --- */

#define FAY_OUTPUT_BAR 40 /* characters of the longest */
int fay_output_bar_width(const struct fay_writer *writer, int used);
void fay_output_bar(char text[FAY_OUTPUT_BAR + 1], uint64_t value, uint64_t largest, int width);
/* A line for each bucket from the first to the last that is not empty; many empty ones in a row are
 * one line. */
void fay_output_histogram(const struct fay_writer *writer, const struct fay_view_column *view,
			  const uint64_t *buckets, size_t count);
/* How many lines these are. */
unsigned fay_output_histogram_height(const uint64_t *buckets, size_t count);

/* --- columns.c --- */

/* How many bytes of a line fit into `room` columns, and the columns that these take. Commands for
 * colours take none. */
size_t fay_output_fit(const char *text, size_t size, unsigned room, unsigned *columns);
/* Of the whole text. */
unsigned fay_output_columns(const char *text);

/* --- live.c --- */

/* The lines that a view may take in a picture that is cut to the terminal's size. */
unsigned fay_live_share(const struct fay_writer *writer);
/* A view is written; what is more is cut off. */
void fay_live_view_end(struct fay_writer *writer);

/* --- heat.c --- */

bool fay_output_is_histogram(const struct fay_view_column *column);
/* The column that is shown as a heat map, the first histogram; NULL: there is none. */
const struct fay_view_column *fay_output_heat_column(const struct fay_view *view);
/* Of the terminal; 0: it is none. */
int fay_output_width(const struct fay_writer *writer);
/* The map shows the row's buckets, too; whether it did not before. */
bool fay_output_heat_widen(struct fay_heat *heat, const struct fay_view_column *column,
			   const uint8_t *row);
/* A line with the values at both ends; the map begins behind `used` characters. */
void fay_output_heat_axis(const struct fay_writer *writer, const struct fay_heat *heat,
			  const struct fay_view_column *column, int used);
/* The row's part of the map. */
void fay_output_heat_line(const struct fay_writer *writer, const struct fay_heat *heat,
			  const struct fay_view_column *column, const uint8_t *row, int used);

/* --- stack.c --- */

/* The name of one frame, 0 the innermost; without what would command the terminal, but for CSV and
 * JSON, which escape it. */
void fay_output_stack_frame(const struct fay_writer *writer, const struct fay_view_column *view,
			    const uint8_t *row, uint32_t frame, unsigned form, char *text,
			    size_t size);
/* All frames but the innermost, a line each; returns how many. */
unsigned fay_output_stack_lines(const struct fay_writer *writer, const struct fay_view_column *view,
				const uint8_t *row);
/* An array of strings. */
void fay_output_json_stack(const struct fay_writer *writer, const struct fay_view_column *view,
			   const uint8_t *row);
/* Frames with `;` between them, the innermost first; malloc'ed, NULL: no memory. */
char *fay_output_stack_text(const struct fay_writer *writer, const struct fay_view_column *view,
			    const uint8_t *row);

#endif
