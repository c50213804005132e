/* SPDX-License-Identifier: MIT */
/* Stacks in results: by name in tables, JSON and CSV, and folded into lines for flame graphs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output_parts.h"

#define FRAME_SIZE FAY_OUTPUT_NAME

void fay_output_stack_frame(const struct fay_writer *writer, const struct fay_view_column *view,
			    const uint8_t *row, uint32_t frame, unsigned form, char *text,
			    size_t size)
{
	uint64_t address = fay_view_address(view, row, frame);
	form |= (frame ? 0 : FAY_ADDRESS_EXACT) | (view->kernel_stack ? FAY_ADDRESS_KERNEL : 0);
	if (writer->address_name)
		writer->address_name(writer->name_context, address, form, text, size);
	else
		snprintf(text, size, "0x%" PRIx64, address);
	if (writer->format == FAY_FORMAT_TABLE || writer->format == FAY_FORMAT_FOLDED)
		fay_printable(text);
}

unsigned fay_output_stack_lines(const struct fay_writer *writer, const struct fay_view_column *view,
				const uint8_t *row)
{
	uint32_t depth = fay_view_stack_depth(view, row);
	char name[FRAME_SIZE];
	for (uint32_t i = 1; i < depth; i++) {
		fay_output_stack_frame(writer, view, row, i, FAY_ADDRESS_READABLE, name,
				       sizeof(name));
		fprintf(writer->out, "  %s\n", name);
	}
	return depth > 1 ? depth - 1 : 0;
}

void fay_output_json_stack(const struct fay_writer *writer, const struct fay_view_column *view,
			   const uint8_t *row)
{
	uint32_t depth = fay_view_stack_depth(view, row);
	char name[FRAME_SIZE];
	fputc('[', writer->out);
	for (uint32_t i = 0; i < depth; i++) {
		fay_output_stack_frame(writer, view, row, i, 0, name, sizeof(name));
		fay_json_text(writer->out, i ? "," : "", name);
	}
	fputc(']', writer->out);
}

char *fay_output_stack_text(const struct fay_writer *writer, const struct fay_view_column *view,
			    const uint8_t *row)
{
	uint32_t depth = fay_view_stack_depth(view, row);
	char name[FRAME_SIZE], *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	for (uint32_t i = 0; memory && i < depth; i++) {
		fay_output_stack_frame(writer, view, row, i, 0, name, sizeof(name));
		fprintf(memory, "%s%s", i ? ";" : "", name);
	}
	return memory && !fclose(memory) ? text : NULL;
}

/* --- folded --- */

struct folded {
	char *text;
	uint64_t count;
};

/* A part of a line: what separates parts is not in it. */
static void put_part(FILE *out, const char *text, bool first)
{
	fputs(first ? "" : ";", out);
	for (; *text; text++)
		fputc(*text == ';' ? ':' : *text == '\n' ? ' ' : *text, out);
}

/* Keys that are no stack come first, as a flame graph's lowest frames. */
static void put_line(const struct fay_writer *writer, const struct fay_view *view,
		     const uint8_t *row, FILE *out)
{
	char name[FRAME_SIZE];
	bool first = true;
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		if (column->stack_frames || column->column->merge != FAY_MERGE_KEY)
			continue;
		fay_output_format_value(writer, column, row, name, sizeof(name));
		put_part(out, name, first);
		first = false;
	}
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		if (writer->marks_cut && column->stack_frames > 1 &&
		    fay_view_stack_depth(column, row) == column->stack_frames) {
			snprintf(name, sizeof(name), "(cut at %" PRIu32 " functions)",
				 column->stack_frames);
			put_part(out, name, first);
			first = false;
		}
		for (uint32_t frame = column->stack_frames ? fay_view_stack_depth(column, row) : 0;
		     frame-- > 0; first = false) {
			fay_output_stack_frame(writer, column, row, frame, FAY_ADDRESS_BARE, name,
					       sizeof(name));
			put_part(out, name, first);
		}
	}
}

/* The first whole number that is no key; NULL: there is none. */
static const struct fay_view_column *column_of(const struct fay_view *view, const uint8_t *row)
{
	struct fay_value value;
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_schema_column *column = view->columns[c].column;
		if (column->merge != FAY_MERGE_KEY && fay_value_decode(column, row, &value) &&
		    (value.kind == FAY_VALUE_U64 || value.kind == FAY_VALUE_I64))
			return &view->columns[c];
	}
	return NULL;
}

/* A row of an event stands for one. */
static uint64_t count_of(const struct fay_view *view, const uint8_t *row)
{
	struct fay_value value;
	const struct fay_view_column *column = column_of(view, row);
	if (!column || !fay_value_decode(column->column, row, &value))
		return 1;
	return value.kind == FAY_VALUE_U64 ? value.u64 : value.i64 > 0 ? (uint64_t)value.i64 : 0;
}

const struct fay_view_column *fay_output_folded_column(const struct fay_view *view,
						       const struct fay_result *result)
{
	return result->row_count ? column_of(view, result->rows) : NULL;
}

static int compare_folded(const void *left, const void *right)
{
	return strcmp(((const struct folded *)left)->text, ((const struct folded *)right)->text);
}

static bool fold_row(const struct fay_writer *writer, const struct fay_view *view,
		     const uint8_t *row, struct folded *line)
{
	size_t size;
	FILE *out = open_memstream(&line->text, &size);
	if (!out)
		return false;
	put_line(writer, view, row, out);
	line->count = count_of(view, row);
	return !fclose(out);
}

void fay_output_folded(struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, bool final)
{
	if (!final)
		return;
	struct folded *lines = calloc(result->row_count + 1, sizeof(*lines));
	size_t count = 0;
	while (lines && count < result->row_count &&
	       fold_row(writer, view, result->rows + count * result->row_size, &lines[count]))
		count++;
	if (count < result->row_count)
		fprintf(stderr, "fay: out of memory for the stacks: %zu of %zu rows are shown\n",
			count, result->row_count);
	if (count)
		qsort(lines, count, sizeof(*lines), compare_folded);
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && !strcmp(lines[i].text, lines[i + 1].text))
			lines[i + 1].count += lines[i].count;
		else if (lines[i].count)
			fprintf(writer->out, "%s %" PRIu64 "\n", lines[i].text, lines[i].count);
		free(lines[i].text);
	}
	free(lines);
}

void fay_output_folded_row(struct fay_writer *writer, const struct fay_view *view,
			   const uint8_t *row)
{
	fay_output_folded(writer, view,
			  &(struct fay_result){ .rows = (uint8_t *)row,
						.row_count = 1,
						.row_size = view->row_size },
			  true);
}
