/* SPDX-License-Identifier: MIT */
/*
 * OpenTelemetry's protocol (OTLP 1.3) as JSON, one request a line, as a collector takes it at
 * /v1/metrics and /v1/traces and reads it from files: results of groups are metrics, events with a
 * span of time are spans. The mapping is protobuf's for JSON, where words of 64 bits are strings,
 * but for identifiers, which OTLP has in hexadecimal.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/clock.h"

#include "metrics.h"

#define CUMULATIVE 2 /* of AggregationTemporality */

/* --- values --- */

static void put_attribute(FILE *out, const char *name, const char *text, size_t size, bool first)
{
	bool cut = size > FAY_METRIC_LABEL_SIZE;
	fay_json_text(out, first ? "{\"key\":" : ",{\"key\":", name);
	fputs(",\"value\":{\"stringValue\":", out);
	fay_json_string(out, text, cut ? FAY_METRIC_LABEL_SIZE : size);
	fputs("}}", out);
}

static void put_text_attribute(FILE *out, const char *name, const char *text, bool first)
{
	put_attribute(out, name, text, strlen(text), first);
}

static void put_double(FILE *out, double value)
{
	char text[32];
	fay_metric_real(text, value);
	if (isfinite(value))
		fputs(text, out);
	else
		fputs(isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"", out);
}

/* Who says it, up to what is said: the service is the user's to name, as for OpenTelemetry's own
 * libraries. */
static void begin_request(FILE *out, const char *what, const char *scopes)
{
	char host[256] = "";
	const char *service = getenv("OTEL_SERVICE_NAME");
	gethostname(host, sizeof(host) - 1);
	fprintf(out, "{\"%s\":[{\"resource\":{\"attributes\":[", what);
	put_text_attribute(out, "service.name", service && *service ? service : "fay", true);
	put_text_attribute(out, "host.name", host, false);
	fprintf(out, "]},\"%s\":[{\"scope\":{\"name\":\"fay\"},", scopes);
}

static void put_times(const struct fay_writer *writer)
{
	fprintf(writer->out,
		"\"startTimeUnixNano\":\"%" PRId64 "\",\"timeUnixNano\":\"%" PRIu64 "\"",
		writer->since, fay_realtime());
}

/* --- metrics --- */

/* A point's labels, with one of a quantile or a value beside the row's; "": none. */
static void begin_point(const struct fay_metrics *m, const char *labels, const char *name,
			const char *value, bool first)
{
	FILE *out = m->writer->out;
	fputs(first ? "{" : ",{", out);
	if (*labels || *name) /* a list without any is none in OTLP */
		fprintf(out, "\"attributes\":[%s", labels);
	if (*name)
		put_text_attribute(out, name, value, !*labels);
	if (*labels || *name)
		fputs("],", out);
	put_times(m->writer);
}

static void put_number(const struct fay_metrics *m, uint32_t c, const struct fay_value *value)
{
	FILE *out = m->writer->out;
	bool seconds = m->view->columns[c].nanoseconds;
	double real = value->kind == FAY_VALUE_DOUBLE ? value->d
		      : value->kind == FAY_VALUE_I64  ? (double)value->i64
						      : (double)value->u64;
	if (value->kind == FAY_VALUE_DOUBLE || seconds) {
		fputs(",\"asDouble\":", out);
		put_double(out, seconds ? real / 1e9 : real);
	} else if (value->kind == FAY_VALUE_U64 && value->u64 > INT64_MAX) {
		fprintf(out, ",\"asDouble\":%" PRIu64, value->u64); /* there is no unsigned one */
	} else {
		fprintf(out, ",\"asInt\":\"%" PRId64 "\"",
			value->kind == FAY_VALUE_I64 ? value->i64 : (int64_t)value->u64);
	}
	fputc('}', out);
}

static void put_histogram(const struct fay_metrics *m, uint32_t c, const struct fay_value *value,
			  const char *labels, bool first)
{
	FILE *out = m->writer->out;
	uint64_t total = 0, count = 0;
	double bound;
	bool any = false;
	begin_point(m, labels, "", "", first);
	fputs(",\"bucketCounts\":[", out);
	for (size_t i = 0; i < value->histogram.count; i++) {
		total += value->histogram.buckets[i];
		count += value->histogram.buckets[i];
		if (!fay_metric_bucket_is_shown(value, i) ||
		    !fay_metric_bucket_bound(m, c, value, i, &bound))
			continue;
		fprintf(out, "\"%" PRIu64 "\",", count);
		count = 0;
	}
	fprintf(out, "\"%" PRIu64 "\"],\"explicitBounds\":[", count);
	for (size_t i = 0; i < value->histogram.count; i++) {
		if (!fay_metric_bucket_is_shown(value, i) ||
		    !fay_metric_bucket_bound(m, c, value, i, &bound))
			continue;
		fputs(any ? "," : "", out);
		put_double(out, bound);
		any = true;
	}
	fprintf(out, "],\"count\":\"%" PRIu64 "\"}", total);
}

/* Quantiles, or the most frequent values with how often they were counted: a point each. */
static void put_list(const struct fay_metrics *m, uint32_t c, const struct fay_metric_line *line,
		     bool *first)
{
	const struct fay_schema_column *column = m->view->columns[c].column;
	struct fay_item item;
	char label[32];
	for (size_t i = 0; fay_value_item(column, line->row, i, &item); i++, *first = false) {
		struct fay_value value = { .kind = FAY_VALUE_DOUBLE, .d = item.value };
		if (item.label) { /* p50, p99.9 */
			fay_metric_real(label, strtod(item.label + 1, NULL) / 100);
			begin_point(m, line->labels, "quantile", label, *first);
			put_number(m, c, &value);
			continue;
		}
		snprintf(label, sizeof(label),
			 column->type == FAY_TYPE_I64 ? "%" PRId64 : "%" PRIu64, item.key);
		begin_point(m, line->labels, "value", label, *first);
		fprintf(m->writer->out, ",\"asInt\":\"%" PRIu64 "\"}", item.count);
	}
}

static void put_points(const struct fay_metrics *m, uint32_t c, const struct fay_metric_line *line,
		       bool *first)
{
	const struct fay_view_column *column = &m->view->columns[c];
	struct fay_value value;
	char label[32] = "";
	if (!fay_value_decode(column->column, line->row, &value))
		return;
	if (value.kind == FAY_VALUE_LIST) {
		put_list(m, c, line, first);
		return;
	}
	if (column->is_quantile)
		fay_metric_real(label, column->quantile);
	if (value.kind == FAY_VALUE_HISTOGRAM) {
		put_histogram(m, c, &value, line->labels, *first);
	} else {
		begin_point(m, line->labels, *label ? "quantile" : "", label, *first);
		put_number(m, c, &value);
	}
	*first = false;
}

static void put_metric(const struct fay_metrics *m, uint32_t c)
{
	FILE *out = m->writer->out;
	bool sum = m->kinds[c] == FAY_METRIC_COUNTER,
	     histogram = m->kinds[c] == FAY_METRIC_HISTOGRAM, first = true;
	fay_json_text(out, "{\"name\":", m->names[c]);
	fay_json_text(out,
		      ",\"description\":", m->writer->query ? m->writer->query : "a probe image");
	fprintf(out, ",\"unit\":\"%s\",\"%s\":{", m->view->columns[c].nanoseconds ? "s" : "1",
		sum         ? "sum"
		: histogram ? "histogram"
			    : "gauge");
	if (sum || histogram)
		fprintf(out, "\"aggregationTemporality\":%d,", CUMULATIVE);
	fprintf(out, "%s\"dataPoints\":[", sum ? "\"isMonotonic\":true," : "");
	for (size_t i = 0; i < m->count; i++)
		put_points(m, c, &m->lines[i], &first);
	fputs("]}},", out);
}

static void put_losses(const struct fay_metrics *m, const struct fay_result *result)
{
	FILE *out = m->writer->out;
	char name[FAY_METRIC_NAME];
	fay_metrics_prefix(m, name);
	fprintf(out,
		"{\"name\":\"%s_lost_events\",\"unit\":\"1\",\"sum\":{"
		"\"aggregationTemporality\":%d,\"isMonotonic\":true,\"dataPoints\":[",
		name, CUMULATIVE);
	begin_point(m, "", "", "", true);
	fprintf(out, ",\"asInt\":\"%" PRIu64 "\"}]}},", fay_metrics_lost(result));
	fprintf(out, "{\"name\":\"%s_rows_left_out\",\"unit\":\"1\",\"gauge\":{\"dataPoints\":[",
		name);
	begin_point(m, "", "", "", true);
	fprintf(out, ",\"asInt\":\"%zu\"}]}}", m->left_out);
}

void fay_output_otlp_schema(struct fay_writer *writer, const struct fay_view *views, size_t count)
{
	writer->since = (int64_t)fay_realtime();
}

void fay_output_otlp(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final)
{
	static const struct fay_metric_format format = { put_attribute, .seconds = false };
	struct fay_metrics m;
	if (fay_output_has_span(view)) {
		for (size_t r = 0; final && r < result->row_count; r++)
			fay_output_otlp_row(writer, view, result->rows + r * result->row_size);
		return;
	}
	if (!fay_metrics_init(&m, &format, writer, view, result))
		return;
	begin_request(writer->out, "resourceMetrics", "scopeMetrics");
	fputs("\"metrics\":[", writer->out);
	for (uint32_t c = 0; c < view->column_count; c++)
		if (m.kinds[c] > FAY_METRIC_LABEL)
			put_metric(&m, c);
	put_losses(&m, result);
	fputs("]}]}]}\n", writer->out);
	fay_metrics_deinit(&m);
}

/* --- spans --- */

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* What a thread calls while this fay runs is one trace. */
static void put_identifiers(struct fay_writer *writer, int64_t pid, int64_t tid)
{
	uint64_t run = mix((uint64_t)writer->since ^ mix((uint64_t)getpid()));
	uint64_t thread = mix(run ^ ((uint64_t)pid << 32) ^ (uint64_t)tid);
	uint64_t span = mix(thread ^ mix(++writer->spans));
	fprintf(writer->out,
		"{\"traceId\":\"%016" PRIx64 "%016" PRIx64 "\",\"spanId\":\"%016" PRIx64 "\"", run,
		thread | 1, span ? span : 1);
}

static void put_value(struct fay_writer *writer, const struct fay_view_column *column,
		      const uint8_t *row, const char *name, bool first)
{
	FILE *out = writer->out;
	struct fay_value value;
	bool plain = fay_column_is_plain(column->column) && !column->stack_frames &&
		     column->column->type != FAY_TYPE_FUNCTION && !column->address &&
		     !column->enumeration && fay_value_decode(column->column, row, &value);
	if (plain && (value.kind == FAY_VALUE_I64 || value.kind == FAY_VALUE_U64) &&
	    (value.kind == FAY_VALUE_I64 || value.u64 <= INT64_MAX)) {
		fay_json_text(out, first ? "{\"key\":" : ",{\"key\":", name);
		fprintf(out, ",\"value\":{\"intValue\":\"%" PRId64 "\"}}",
			value.kind == FAY_VALUE_I64 ? value.i64 : (int64_t)value.u64);
		return;
	}
	char *text = NULL;
	size_t size = 0;
	FILE *memory = column->stack_frames ? NULL : open_memstream(&text, &size);
	if (memory) {
		fay_output_put_value(memory, writer, column, row);
		fclose(memory);
	} else if ((text = fay_output_stack_text(writer, column, row))) {
		size = strlen(text);
	}
	put_attribute(out, name, text ? text : "out of memory", text ? size : 13, first);
	free(text);
}

void fay_output_otlp_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row)
{
	struct fay_event_columns columns = fay_output_event_columns(view);
	FILE *out = writer->out;
	int64_t time = fay_output_whole(columns.time, row),
		span = fay_output_whole(columns.span, row);
	int64_t pid = fay_output_whole(columns.pid, row),
		tid = columns.tid ? fay_output_whole(columns.tid, row) : pid;
	bool first = true;
	begin_request(out, "resourceSpans", "scopeSpans");
	fputs("\"spans\":[", out);
	put_identifiers(writer, pid, tid);
	fputs(",\"name\":", out);
	fay_output_event_name(writer, columns.name, row);
	fprintf(out,
		",\"kind\":1,\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64
		"\"",
		time - span, time);
	for (uint32_t c = 0; c < view->column_count; c++) {
		const struct fay_view_column *column = &view->columns[c];
		if (column == columns.time || column == columns.span || column == columns.name)
			continue;
		fputs(first ? ",\"attributes\":[" : "", out);
		put_value(writer, column, row,
			  column == columns.pid   ? "process.pid"
			  : column == columns.tid ? "thread.id"
						  : column->name,
			  first);
		first = false;
	}
	fputs(first ? "}]}]}]}\n" : "]}]}]}]}\n", out);
}
