/* SPDX-License-Identifier: MIT */
/*
 * Rows of events as JSON of Chrome's trace viewer ("Trace Event Format", the array), which Perfetto
 * and speedscope read. The first column that is a time is when the event was; the first one that is
 * a span of time ended then: calls with their durations, one above the other by thread.
 *
 * Times are microseconds in it, and its readers take them for doubles: those since 1970 would not
 * keep the nanoseconds. They are counted from an hour at most two hours before the first event, so
 * that no event is before it, whatever the order in which threads' events come. Perfetto makes
 * nanoseconds of them by a multiplication, whose fraction its versions before 2025 cut off: where
 * that would be one less, a tenth of a nanosecond stands behind.
 *
 * Calls of a thread nest (nest.c). Spans that do not are pairs of `b` and `e`, which need not.
 */
#include <inttypes.h>
#include <stdlib.h>
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
	bool less = (uint64_t)((double)size / 1000 * 1000) < size;
	fprintf(out, ",\"%s\":%s%" PRIu64 ".%03u%s", name, ns < 0 ? "-" : "", size / 1000,
		(unsigned)(size % 1000), less ? "1" : "");
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

/* An event up to its arguments. */
static void begin_event(struct fay_writer *writer, const struct fay_event_columns *columns,
			const uint8_t *row, const char *phase)
{
	FILE *out = writer->out;
	int64_t pid = fay_output_whole(columns->pid, row);
	fputs(writer->header_written ? ",\n{\"name\":" : "[\n{\"name\":", out);
	writer->header_written = true;
	fay_output_event_name(writer, columns->name, row);
	fprintf(out, ",\"ph\":%s,\"pid\":%" PRId64 ",\"tid\":%" PRId64, phase, pid,
		columns->tid ? fay_output_whole(columns->tid, row) : pid);
}

static void put_arguments(struct fay_writer *writer, const struct fay_view *view,
			  const struct fay_event_columns *columns, const uint8_t *row)
{
	bool any = false;
	fputs(",\"args\":{", writer->out);
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		if (column == columns->time || column == columns->span || column == columns->name ||
		    column == columns->pid || column == columns->tid)
			continue;
		fay_json_text(writer->out, any ? "," : "", column->name);
		fputc(':', writer->out);
		fay_output_json_value(writer, column, row);
		any = true;
	}
	fputs("}}", writer->out);
}

/* Its place among the spans of its thread; false: it has none. */
static bool nests(struct fay_writer *writer, const struct fay_event_columns *columns,
		  const uint8_t *row, int64_t *begin, int64_t *end)
{
	int64_t pid = fay_output_whole(columns->pid, row);
	if (!writer->nest)
		writer->nest = fay_output_nest_create();
	return writer->nest &&
	       fay_output_nest(writer->nest, pid,
			       columns->tid ? fay_output_whole(columns->tid, row) : pid, begin,
			       end);
}

void fay_output_chrome_row(struct fay_writer *writer, const struct fay_view *view,
			   const uint8_t *row)
{
	struct fay_event_columns columns = fay_output_event_columns(view);
	FILE *out = writer->out;
	int64_t end = fay_output_whole(columns.time, row),
		begin = end - fay_output_whole(columns.span, row);
	if (!writer->header_written)
		writer->since = (end / (int64_t)HOUR - 1) * (int64_t)HOUR;
	if (!columns.span) {
		begin_event(writer, &columns, row, "\"i\",\"s\":\"t\"");
		put_microseconds(out, "ts", end - writer->since);
	} else if (nests(writer, &columns, row, &begin, &end)) {
		begin_event(writer, &columns, row, "\"X\"");
		put_microseconds(out, "ts", begin - writer->since);
		put_microseconds(out, "dur", end - begin);
	} else {
		begin_event(writer, &columns, row, "\"b\",\"cat\":\"overlapping\"");
		fprintf(out, ",\"id\":%" PRIu64, ++writer->spans);
		put_microseconds(out, "ts", begin - writer->since);
		put_arguments(writer, view, &columns, row);
		begin_event(writer, &columns, row, "\"e\",\"cat\":\"overlapping\"");
		fprintf(out, ",\"id\":%" PRIu64, writer->spans);
		put_microseconds(out, "ts", end - writer->since);
		fputc('}', out);
		return;
	}
	put_arguments(writer, view, &columns, row);
}

struct by_time {
	const struct fay_view_column *time, *span;
};

/* What ends first; of what ends at once the shorter. */
static int compare_times(const void *a, const void *b, void *context)
{
	const struct by_time *by = context;
	const uint8_t *x = *(const uint8_t *const *)a, *y = *(const uint8_t *const *)b;
	int64_t left = fay_output_whole(by->time, x), right = fay_output_whole(by->time, y);
	if (left == right) {
		left = fay_output_whole(by->span, x);
		right = fay_output_whole(by->span, y);
	}
	return left < right ? -1 : left > right ? 1 : x < y ? -1 : 1;
}

void fay_output_chrome(struct fay_writer *writer, const struct fay_view *view,
		       const struct fay_result *result, bool final)
{
	struct fay_event_columns columns = fay_output_event_columns(view);
	struct by_time by = { columns.time, columns.span };
	size_t count = final ? result->row_count : 0;
	const uint8_t **rows = calloc(count + 1, sizeof(*rows));
	for (size_t r = 0; rows && r < count; r++)
		rows[r] = result->rows + r * result->row_size;
	if (rows)
		qsort_r(rows, count, sizeof(*rows), compare_times, &by);
	for (size_t r = 0; r < count; r++)
		fay_output_chrome_row(writer, view,
				      rows ? rows[r] : result->rows + r * result->row_size);
	free(rows);
}

void fay_output_chrome_close(struct fay_writer *writer)
{
	fputs(writer->header_written ? "\n]\n" : "[]\n", writer->out);
	fay_output_nest_free(writer->nest);
	writer->nest = NULL;
}
