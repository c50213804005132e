/* SPDX-License-Identifier: MIT */
/*
 * Results as JSON lines (docs/cli-json.md): {"type":"schema"...}, then {"type":"row"...} for each
 * row of each picture, with "final" true in the last picture, then {"type":"end"...} of trace/.
 */
#include <string.h>

#include "output_parts.h"

static const char *const merge_names[] = { "key",       "count",     "sum",       "min",
					   "max",       "average",   "histogram", "histogram",
					   "histogram", "quantiles", "distinct",  "top",
					   "first",     "last",      "sample" };
static const char *const type_names[] = { "?",        "int64", "uint64", "string",
					  "function", "time",  "bool" };

static const char *merge_name(const struct fay_schema_column *column)
{
	return column->merge == (uint16_t)FAY_RESULT_COMPUTED ? "computed"
							      : merge_names[column->merge];
}

static const char *type_name(const struct fay_view_column *view)
{
	const struct fay_schema_column *column = view->column;
	if (view->stack_frames)
		return "stack";
	if (view->address || view->enumeration)
		return view->address ? "address" : "enum";
	return column->type == (uint16_t)FAY_RESULT_REAL ? "double" : type_names[column->type];
}

void fay_output_json_schema(struct fay_writer *writer, const struct fay_view *views, size_t count)
{
	FILE *out = writer->out;
	fay_json_text(out, "{\"type\":\"schema\",\"query\":", writer->query);
	fprintf(out, ",\"results\":[");
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "%s{\"name\":", i ? "," : "");
		if (views[i].title)
			fay_json_string(out, views[i].title, strlen(views[i].title));
		else
			fprintf(out, "null");
		fprintf(out, ",\"columns\":[");
		for (uint32_t c = 0; c < views[i].column_count; c++) {
			const struct fay_view_column *column = &views[i].columns[c];
			fprintf(out, "%s{\"name\":", c ? "," : "");
			fay_json_string(out, column->name, strlen(column->name));
			fprintf(out, ",\"type\":\"%s\",\"merge\":\"%s\"}", type_name(column),
				merge_name(column->column));
		}
		fprintf(out, "]}");
	}
	fprintf(out, "]}\n");
}

static void write_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row,
		      bool final)
{
	FILE *out = writer->out;
	fay_json_text(out, "{\"type\":\"row\",\"result\":", view->title);
	fprintf(out, ",\"final\":%s%s,\"values\":{", final ? "true" : "false",
		writer->revised ? ",\"revised\":true" : "");
	for (uint32_t c = 0; c < view->column_count; c++) {
		if (c)
			fputc(',', out);
		fay_json_string(out, view->columns[c].name, strlen(view->columns[c].name));
		fputc(':', out);
		fay_output_json_value(writer, &view->columns[c], row);
	}
	fprintf(out, "}}\n");
}

void fay_output_json(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final)
{
	for (size_t r = 0; r < result->row_count; r++)
		write_row(writer, view, result->rows + r * result->row_size, final);
}

void fay_output_json_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row)
{
	write_row(writer, view, row, true);
}
