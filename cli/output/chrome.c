/* SPDX-License-Identifier: MIT */
/*
 * Rows of events as JSON of Chrome's trace viewer ("Trace Event Format", the array), which Perfetto
 * and speedscope read. The first column that is a time is when the event was; the first one that is
 * a span of time ended then: calls with their durations, one above the other by thread.
 *
 * Times are microseconds in it, and its readers take them for doubles: those since 1970 would not
 * keep the nanoseconds. They are counted from an hour at most two hours before the first event, so
 * that no event is before it, whatever the order in which threads' events come.
 */
#include <inttypes.h>
#include <string.h>

#include "output_parts.h"

#define HOUR 3600000000000u /* ns */

static bool is_name(const struct fay_view_column *column)
{
	return column->column->type == FAY_TYPE_FUNCTION || column->address || column->enumeration;
}

struct fay_event_columns fay_output_event_columns(const struct fay_view *view)
{
	struct fay_event_columns found = { 0 };
	for (uint32_t c = view->column_count; c-- > 0;) {
		const struct fay_view_column *column = &view->columns[c];
		if (!fay_column_is_plain(column->column) || column->stack_frames)
			continue;
		if (column->column->type == FAY_TYPE_TIME)
			found.time = column;
		else if (column->nanoseconds)
			found.span = column;
		else if (is_name(column))
			found.name = column;
		else if (!strcmp(column->name, "pid"))
			found.pid = column;
		else if (!strcmp(column->name, "tid"))
			found.tid = column;
	}
	return found;
}

bool fay_output_has_time(const struct fay_view *view)
{
	return fay_output_event_columns(view).time != NULL;
}

bool fay_output_has_span(const struct fay_view *view)
{
	struct fay_event_columns columns = fay_output_event_columns(view);
	return columns.time && columns.span;
}

int64_t fay_output_whole(const struct fay_view_column *column, const uint8_t *row)
{
	struct fay_value value;
	if (!column || !fay_value_decode(column->column, row, &value))
		return 0;
	return value.kind == FAY_VALUE_I64   ? value.i64
	       : value.kind == FAY_VALUE_U64 ? (int64_t)value.u64
					     : 0;
}

static void put_microseconds(FILE *out, const char *name, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	fprintf(out, ",\"%s\":%s%" PRIu64 ".%03u", name, ns < 0 ? "-" : "", size / 1000,
		(unsigned)(size % 1000));
}

void fay_output_event_name(struct fay_writer *writer, const struct fay_view_column *column,
			   const uint8_t *row)
{
	struct fay_value value;
	bool is_text = column && fay_value_decode(column->column, row, &value);
	if (!is_text) {
		fputs("\"event\"", writer->out);
		return;
	}
	/* a number without a name, too, is text here */
	char text[FAY_OUTPUT_NAME];
	FILE *memory = fmemopen(text, sizeof(text) - 1, "w");
	if (memory) {
		fay_output_put_value(memory, writer, column, row);
		size_t size = (size_t)ftell(memory);
		fclose(memory);
		fay_json_string(writer->out, text,
				size < sizeof(text) - 1 ? size : sizeof(text) - 1);
	} else {
		fputs("\"event\"", writer->out);
	}
}

void fay_output_chrome_row(struct fay_writer *writer, const struct fay_view *view,
			   const uint8_t *row)
{
	struct fay_event_columns columns = fay_output_event_columns(view);
	FILE *out = writer->out;
	int64_t time = fay_output_whole(columns.time, row),
		span = fay_output_whole(columns.span, row);
	bool any = false;
	if (!writer->header_written)
		writer->since = (time / (int64_t)HOUR - 1) * (int64_t)HOUR;
	fputs(writer->header_written ? ",\n{\"name\":" : "[\n{\"name\":", out);
	writer->header_written = true;
	fay_output_event_name(writer, columns.name, row);
	fprintf(out, ",\"ph\":\"%s\"", columns.span ? "X" : "i\",\"s\":\"t");
	put_microseconds(out, "ts", time - span - writer->since);
	if (columns.span)
		put_microseconds(out, "dur", span);
	int64_t pid = fay_output_whole(columns.pid, row);
	fprintf(out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64 ",\"args\":{", pid,
		columns.tid ? fay_output_whole(columns.tid, row) : pid);
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		if (column == columns.time || column == columns.span || column == columns.name ||
		    column == columns.pid || column == columns.tid)
			continue;
		fay_json_text(out, any ? "," : "", column->name);
		fputc(':', out);
		fay_output_json_value(writer, column, row);
		any = true;
	}
	fputs("}}", out);
}

void fay_output_chrome(struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, bool final)
{
	for (size_t r = 0; final && r < result->row_count; r++)
		fay_output_chrome_row(writer, view, result->rows + r * result->row_size);
}

void fay_output_chrome_close(struct fay_writer *writer)
{
	fputs(writer->header_written ? "\n]\n" : "[]\n", writer->out);
}
