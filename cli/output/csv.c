/* SPDX-License-Identifier: MIT */
/*
 * Results as CSV (RFC 4180, lines end with a line feed). Values are whole: nothing is cut to a
 * column's width. A cell with a comma, a quote or a line break stands in quotes. The RFC knows no
 * other control characters and no bytes that are not text; they are written as `\x1b`, since what a
 * traced program calls itself must not command the terminal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fay/utf8.h"

#include "output_parts.h"

/* Would a spreadsheet take the cell for a formula, and run what the traced program put into a name?
 * Numbers are none. */
static bool is_formula(const char *text)
{
	char *end;
	if (!*text || !strchr("=+-@", *text))
		return false;
	strtod(text, &end);
	return *end != 0;
}

static void write_text(FILE *out, const char *text)
{
	size_t size = strlen(text);
	for (size_t at = 0, length; at < size; at += length ? length : 1) {
		length = fay_utf8_printable((const uint8_t *)text + at, size - at);
		if (text[at] == '"')
			fputs("\"\"", out);
		else if (length || text[at] == '\n')
			fwrite(text + at, length ? length : 1, 1, out);
		else
			fprintf(out, "\\x%02x", (unsigned char)text[at]);
	}
}

/* An empty text is `""`: nothing at all is a value that does not exist. */
static void write_cell(FILE *out, const char *text)
{
	bool quoted = !*text || strpbrk(text, ",\"\n");
	fputs(quoted ? "\"" : "", out);
	fputs(is_formula(text) ? "'" : "", out);
	write_text(out, text);
	fputs(quoted ? "\"" : "", out);
}

/* Numbers and times need no quotes. */
static bool is_plain_cell(const struct fay_view_column *column, const struct fay_value *value)
{
	return (value->kind == FAY_VALUE_I64 && !column->enumeration) ||
	       value->kind == FAY_VALUE_DOUBLE ||
	       (value->kind == FAY_VALUE_U64 && !column->address &&
		column->column->type != FAY_TYPE_FUNCTION);
}

static void write_value(struct fay_writer *writer, const struct fay_view_column *column,
			const uint8_t *row)
{
	struct fay_value value;
	char *text = NULL;
	size_t size;
	if (column->stack_frames) {
		text = fay_output_stack_text(writer, column, row);
	} else {
		if (!fay_value_decode(column->column, row, &value))
			return;
		if (is_plain_cell(column, &value)) {
			fay_output_put_value(writer->out, writer, column, row);
			return;
		}
		FILE *memory = open_memstream(&text, &size);
		if (memory) {
			fay_output_put_value(memory, writer, column, row);
			fclose(memory);
		}
	}
	if (text)
		write_cell(writer->out, text);
	else
		fputs("out of memory", writer->out);
	free(text);
}

static void write_header(struct fay_writer *writer, const struct fay_view *view)
{
	if (view->title)
		write_cell(writer->out, "result");
	for (uint32_t c = 0; c < view->column_count; c++) {
		if (c || view->title)
			fputc(',', writer->out);
		write_cell(writer->out, view->columns[c].name);
	}
	fputc('\n', writer->out);
}

static void write_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row)
{
	if (view->title)
		write_cell(writer->out, view->title);
	for (uint32_t c = 0; c < view->column_count; c++) {
		if (c || view->title)
			fputc(',', writer->out);
		write_value(writer, &view->columns[c], row);
	}
	fputc('\n', writer->out);
}

void fay_output_csv(struct fay_writer *writer, const struct fay_view *view,
		    const struct fay_result *result, bool final)
{
	if (!final)
		return;
	write_header(writer, view);
	for (size_t r = 0; r < result->row_count; r++)
		write_row(writer, view, result->rows + r * result->row_size);
}

void fay_output_csv_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row)
{
	if (!writer->header_written)
		write_header(writer, view);
	writer->header_written = true;
	write_row(writer, view, row);
}
