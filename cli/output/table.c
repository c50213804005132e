/* SPDX-License-Identifier: MIT */
/* Results as tables, redrawn in place on a terminal; rows of events as they come. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output_parts.h"

/* characters of a cell in rows that are shown as they come; of a time */
#define STREAM_CELL 16
#define STREAM_TIME 29
#define STREAM_WIDEST 48
#define STREAM_STEP 8 /* by which one grows, so that its head is not written too often */
#define LEAST_CELL 6

bool fay_output_is_numeric(const struct fay_view_column *column)
{
	return !column->address && column->column->type != FAY_TYPE_STRING &&
	       column->column->type != FAY_TYPE_FUNCTION && column->column->type != FAY_TYPE_TIME;
}

uint64_t fay_output_bar_value(const struct fay_view *view, int column, const uint8_t *row)
{
	struct fay_value value;
	if (!fay_value_decode(view->columns[column].column, row, &value))
		return 0;
	switch (value.kind) {
	case FAY_VALUE_I64: return value.i64 > 0 ? (uint64_t)value.i64 : 0;
	case FAY_VALUE_DOUBLE: return value.d > 0 && value.d < 1e18 ? (uint64_t)value.d : 0;
	case FAY_VALUE_U64: return value.u64;
	default: return 0;
	}
}

/* Of groups the number by which the query orders them, else the first count. */
int fay_output_bar_column(const struct fay_view *view)
{
	bool grouped = false;
	int count = -1, orders = -1;
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		bool is_key = column->column->merge == FAY_MERGE_KEY;
		grouped |= is_key;
		if (column->column->merge == FAY_MERGE_COUNT && count < 0)
			count = (int)c;
		if (column->orders && !is_key && fay_output_is_numeric(column) && orders < 0)
			orders = (int)c;
	}
	return !grouped ? -1 : orders >= 0 ? orders : count;
}

struct ranked {
	uint64_t count;
	size_t row;
};

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* Which rows a picture that has no room for all shows: those of the largest counts. */
static struct ranked *rank_rows(const struct fay_view *view, const struct fay_result *result,
				int bars)
{
	struct ranked *ranked = calloc(result->row_count, sizeof(*ranked));
	if (!ranked)
		return NULL;
	for (size_t r = 0; r < result->row_count; r++)
		ranked[r] = (struct ranked){
			fay_output_bar_value(view, bars, result->rows + r * result->row_size), r
		};
	qsort(ranked, result->row_count, sizeof(*ranked), compare_ranked);
	return ranked;
}

static const uint8_t *row_at(const struct fay_result *result, const struct ranked *ranked, size_t r)
{
	return result->rows + (ranked ? ranked[r].row : r) * result->row_size;
}

static void column_widths(const struct fay_writer *writer, const struct fay_view *view,
			  const struct fay_result *result, const struct ranked *ranked, size_t rows,
			  int *widths)
{
	for (uint32_t c = 0; c < view->column_count; c++)
		widths[c] = (int)fay_output_columns(view->columns[c].name);
	for (size_t r = 0; r < rows; r++) {
		for (uint32_t c = 0; c < view->column_count; c++) {
			char text[CELL_SIZE];
			fay_output_format_value(writer, &view->columns[c],
						row_at(result, ranked, r), text, sizeof(text));
			int width = (int)fay_output_columns(text);
			widths[c] = width > widths[c] ? width : widths[c];
		}
	}
}

/* In a live picture names give way to numbers: the widest columns of text become narrower until all
 * columns fit, or none is wide any more. */
static void narrow(const struct fay_writer *writer, const struct fay_view *view, int *widths)
{
	int used = 0, room = fay_output_width(writer);
	for (uint32_t c = 0; c < view->column_count; c++)
		used += widths[c] + 2;
	while (writer->limited && room && used - 2 > room) {
		int widest = -1;
		for (uint32_t c = 0; c < view->column_count; c++)
			if (!fay_output_is_numeric(&view->columns[c]) && widths[c] > LEAST_CELL &&
			    (widest < 0 || widths[c] > widths[widest]))
				widest = (int)c;
		if (widest < 0)
			return;
		widths[widest]--;
		used--;
	}
}

/* Text that is wider than its column has that only in live pictures: its end is left out. */
static void print_cell(const struct fay_writer *writer, const struct fay_view_column *column,
		       int width, const char *text)
{
	FILE *out = writer->out;
	unsigned columns = fay_output_columns(text);
	int gap = width - (int)columns;
	if (gap < 0 && writer->limited) {
		size_t bytes = fay_output_fit(text, strlen(text), (unsigned)width - 3, &columns);
		fprintf(out, "%.*s...%*s  ", (int)bytes, text, width - 3 - (int)columns, "");
		return;
	}
	gap = gap < 0 ? 0 : gap;
	fprintf(out, "%*s%s%*s  ", fay_output_is_numeric(column) ? gap : 0, "", text,
		fay_output_is_numeric(column) ? 0 : gap, "");
}

/* What is behind a row's cells, and below them. */
struct table {
	struct ranked *ranked; /* NULL: rows are in the result's order */
	size_t rows;           /* that are shown */
	int *widths;
	int used; /* characters of all cells */
	int bars; /* the column that bars are drawn for, or -1 */
	int bar_width;
	uint64_t largest;
	const struct fay_view_column *heat_column; /* NULL: no heat map */
	struct fay_heat heat;
};

static bool has_bars(const struct table *table)
{
	return !table->heat_column && table->bars >= 0 && table->bar_width > 0;
}

static void measure_table(const struct fay_writer *writer, const struct fay_view *view,
			  const struct fay_result *result, struct table *table)
{
	column_widths(writer, view, result, table->ranked, table->rows, table->widths);
	narrow(writer, view, table->widths);
	for (uint32_t c = 0; c < view->column_count; c++)
		table->used += table->widths[c] + 2;
	table->bar_width = fay_output_bar_width(writer, table->used);
	for (size_t r = 0; table->bars >= 0 && r < result->row_count; r++) {
		uint64_t count = fay_output_bar_value(view, table->bars,
						      result->rows + r * result->row_size);
		table->largest = count > table->largest ? count : table->largest;
	}
	for (size_t r = 0; table->heat_column && r < table->rows; r++)
		fay_output_heat_widen(&table->heat, table->heat_column,
				      row_at(result, table->ranked, r));
}

/* Over bars stands what they show. */
static void print_head(const struct fay_writer *writer, const struct fay_view *view,
		       const struct table *table)
{
	for (uint32_t c = 0; c < view->column_count; c++)
		print_cell(writer, &view->columns[c], table->widths[c], view->columns[c].name);
	if (has_bars(table)) {
		const char *name = view->columns[table->bars].name;
		unsigned columns;
		size_t shown =
			fay_output_fit(name, strlen(name), (unsigned)table->bar_width, &columns);
		fprintf(writer->out, " %.*s", (int)shown, name);
	}
	fputc('\n', writer->out);
}

static void print_cells(const struct fay_writer *writer, const struct fay_view *view,
			const uint8_t *row, const int *widths)
{
	for (uint32_t c = 0; c < view->column_count; c++) {
		char text[CELL_SIZE];
		fay_output_format_value(writer, &view->columns[c], row, text, sizeof(text));
		print_cell(writer, &view->columns[c], widths[c], text);
	}
}

/* Stacks, and histograms that are not in the heat map. */
static void print_below(const struct fay_writer *writer, const struct fay_view *view,
			const struct table *table, const uint8_t *row)
{
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		struct fay_value value;
		if (column->stack_frames)
			fay_output_stack_lines(writer, column, row);
		if (fay_output_is_histogram(column) && column != table->heat_column &&
		    fay_value_decode(column->column, row, &value))
			fay_output_histogram(writer, column, value.histogram.buckets,
					     value.histogram.count);
	}
}

/* Lines of one row, with what is below it. */
static unsigned row_height(const struct fay_view *view, const struct table *table,
			   const uint8_t *row)
{
	unsigned lines = 1;
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		struct fay_value value;
		uint32_t depth = column->stack_frames ? fay_view_stack_depth(column, row) : 0;
		lines += depth ? depth - 1 : 0;
		if (!fay_output_is_histogram(column) || column == table->heat_column ||
		    !fay_value_decode(column->column, row, &value))
			continue;
		lines +=
			fay_output_histogram_height(value.histogram.buckets, value.histogram.count);
	}
	return lines;
}

/* How many of the rows have room in so many lines. */
static size_t rows_that_fit(const struct fay_view *view, const struct fay_result *result,
			    const struct table *table, unsigned lines)
{
	unsigned used = 0;
	for (size_t r = 0; r < result->row_count; r++) {
		used += row_height(view, table, row_at(result, table->ranked, r));
		if (used > lines)
			return r;
	}
	return result->row_count;
}

/* What the mark of functions means, if a row has one. */
static void print_mark(const struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, const struct table *table)
{
	bool marked = false, named = false;
	for (uint32_t c = 0; c < view->column_count; c++)
		named |= view->columns[c].column->type == FAY_TYPE_FUNCTION;
	for (size_t r = 0; r < table->rows && writer->left_out_count; r++)
		for (uint32_t c = 0; c < view->column_count && !marked; c++) {
			const struct fay_view_column *column = &view->columns[c];
			struct fay_value value;
			marked = column->column->type == FAY_TYPE_FUNCTION &&
				 fay_column_is_plain(column->column) &&
				 fay_value_decode(column->column, row_at(result, table->ranked, r),
						  &value) &&
				 fay_output_is_left_out(writer, value.u64);
		}
	if (marked)
		fputs("* not traced all the time, to stay within the budget\n", writer->out);
	else if (writer->left_out_count && !named)
		fputs("* without what was called while functions were left out, to stay within "
		      "the budget\n",
		      writer->out);
}

static void print_rows(const struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, const struct table *table)
{
	for (size_t r = 0; r < table->rows; r++) {
		const uint8_t *row = row_at(result, table->ranked, r);
		print_cells(writer, view, row, table->widths);
		if (table->heat_column) {
			fay_output_heat_line(writer, &table->heat, table->heat_column, row,
					     table->used);
		} else if (has_bars(table)) {
			char text[FAY_OUTPUT_BAR + 1];
			fay_output_bar(text, fay_output_bar_value(view, table->bars, row),
				       table->largest, table->bar_width);
			fprintf(writer->out, "|%-*s|", table->bar_width, text);
		}
		fputc('\n', writer->out);
		print_below(writer, view, table, row);
	}
}

/* Which rows are shown: in a picture that is cut to the terminal's size as many as have room, and
 * one at least, whose end is cut off. `lines`: behind the table's head. */
static void choose_rows(const struct fay_writer *writer, const struct fay_view *view,
			const struct fay_result *result, struct table *table, unsigned lines)
{
	table->rows =
		writer->limited ? rows_that_fit(view, result, table, lines) : result->row_count;
	if (table->rows == result->row_count)
		return;
	if (table->bars >= 0 && !view->ordered)
		table->ranked = rank_rows(view, result, table->bars);
	/* a line says how many more there are */
	table->rows = rows_that_fit(view, result, table, lines ? lines - 1 : 0);
	table->rows += !table->rows;
}

static void print_table(struct fay_writer *writer, const struct fay_view *view,
			const struct fay_result *result)
{
	struct table table = { .bars = fay_output_bar_column(view),
			       .heat_column =
				       writer->heat_map ? fay_output_heat_column(view) : NULL };
	unsigned share = fay_live_share(writer),
		 head = 1 + (view->title != NULL) + (table.heat_column != NULL);
	table.widths = calloc(view->column_count + 1, sizeof(*table.widths));
	if (!table.widths)
		return;
	choose_rows(writer, view, result, &table, share > head ? share - head : 0);
	measure_table(writer, view, result, &table);
	print_head(writer, view, &table);
	if (table.heat.end)
		fay_output_heat_axis(writer, &table.heat, table.heat_column, table.used);
	print_rows(writer, view, result, &table);
	if (table.rows < result->row_count)
		fprintf(writer->out, "... and %zu more\n", result->row_count - table.rows);
	if (!writer->limited)
		print_mark(writer, view, result, &table);
	free(table.ranked);
	free(table.widths);
}

void fay_output_table(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final)
{
	if (view->title)
		fprintf(writer->out, "%s:\n", view->title);
	if (result->row_count)
		print_table(writer, view, result);
	else
		fputs(final ? "(no event matched)\n" : "(no event matched yet)\n", writer->out);
	fay_live_view_end(writer);
}

/* The cells of a row that comes alone, and how wide its columns are: what is wide enough for all
 * rows is not known. One that a row makes wider, up to STREAM_WIDEST, stays so, and the head is
 * written again. */
static void measure_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row,
			char (*texts)[CELL_SIZE], struct table *table)
{
	for (uint32_t c = 0; c < view->column_count; c++) {
		bool is_time = view->columns[c].column->type == FAY_TYPE_TIME;
		int least = is_time ? STREAM_TIME : STREAM_CELL;
		int known = c < FAY_STREAM_COLUMNS ? writer->widths[c] : 0;
		fay_output_format_value(writer, &view->columns[c], row, texts[c], CELL_SIZE);
		int width = (int)fay_output_columns(texts[c]);
		width = fay_output_is_histogram(&view->columns[c]) ? least
			: width < STREAM_WIDEST                    ? width
								   : STREAM_WIDEST;
		if (width > least)
			width = least +
				(width - least + STREAM_STEP - 1) / STREAM_STEP * STREAM_STEP;
		width = width > least ? width : least;
		table->widths[c] = width > known ? width : known;
		if (c < FAY_STREAM_COLUMNS)
			writer->widths[c] = table->widths[c];
		table->used += table->widths[c] + 2;
	}
}

static void print_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row,
		      char (*texts)[CELL_SIZE], const struct table *table)
{
	const struct fay_view_column *heat = fay_output_heat_column(view);
	fay_live_clear(writer);
	if (!writer->header_written || table->used != writer->used)
		print_head(writer, view, table);
	writer->header_written = true;
	bool wider = heat && fay_output_heat_widen(&writer->heat, heat, row);
	if (heat && (wider || table->used != writer->used))
		fay_output_heat_axis(writer, &writer->heat, heat, table->used);
	writer->used = table->used;
	for (uint32_t c = 0; c < view->column_count; c++)
		print_cell(writer, &view->columns[c], table->widths[c], texts[c]);
	if (heat)
		fay_output_heat_line(writer, &writer->heat, heat, row, table->used);
	fputs(writer->revised ? "  (revised)\n" : "\n", writer->out);
	for (uint32_t c = 0; c < view->column_count; c++)
		if (view->columns[c].stack_frames)
			fay_output_stack_lines(writer, &view->columns[c], row);
}

void fay_output_table_row(struct fay_writer *writer, const struct fay_view *view,
			  const uint8_t *row)
{
	struct table table = { .bars = -1 };
	char(*texts)[CELL_SIZE] = calloc(view->column_count + 1, sizeof(*texts));
	table.widths = calloc(view->column_count + 1, sizeof(*table.widths));
	if (texts && table.widths) {
		measure_row(writer, view, row, texts, &table);
		print_row(writer, view, row, texts, &table);
	}
	free(texts);
	free(table.widths);
}
