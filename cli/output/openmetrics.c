/* SPDX-License-Identifier: MIT */
/*
 * Results by the text format of OpenMetrics 1.0, which Prometheus scrapes. Spans of time are in
 * seconds, as the format asks. Histograms have no _sum, which nobody has added up, and so no _count
 * either; the last bucket is the count.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fay/utf8.h"

#include "metrics.h"

static const char *const types[] = {
	[FAY_METRIC_COUNTER] = "counter",     [FAY_METRIC_GAUGE] = "gauge",
	[FAY_METRIC_HISTOGRAM] = "histogram", [FAY_METRIC_SUMMARY] = "summary",
	[FAY_METRIC_MOST] = "gauge",
};

/* What commands a terminal, or is no character, is written as in CSV: \x1b. */
static void put_escaped(FILE *out, const char *text, size_t size)
{
	bool cut = size > FAY_METRIC_LABEL_SIZE;
	size_t limit = cut ? FAY_METRIC_LABEL_SIZE : size;
	for (size_t at = 0, length; at < limit; at += length ? length : 1) {
		length = fay_utf8_printable((const uint8_t *)text + at, size - at);
		if (text[at] == '\n')
			fputs("\\n", out);
		else if (text[at] == '"' || text[at] == '\\')
			fprintf(out, "\\%c", text[at]);
		else if (length)
			fwrite(text + at, length, 1, out);
		else
			fprintf(out, "\\\\x%02x", (unsigned char)text[at]);
	}
	fputs(cut ? "..." : "", out);
}

static void put_label(FILE *out, const char *name, const char *text, size_t size, bool first)
{
	fprintf(out, "%s%s=\"", first ? "" : ",", name);
	put_escaped(out, text, size);
	fputc('"', out);
}

/* --- samples --- */

/* `more`: a label beside the row's, NAME="VALUE"; "": none. */
static void put_sample_name(const struct fay_metrics *m, uint32_t c, const char *suffix,
			    const char *labels, const char *more)
{
	bool braces = *labels || *more;
	fprintf(m->writer->out, "%s%s%s%s%s%s%s ", m->names[c], suffix, braces ? "{" : "", labels,
		*labels && *more ? "," : "", more, braces ? "}" : "");
}

/* A bound as the format likes it, with a point. */
static void bound_label(char label[48], const char *name, double value)
{
	char text[32];
	fay_metric_real(text, value);
	snprintf(label, 48, "%s=\"%s%s\"", name, text, strpbrk(text, ".eIN") ? "" : ".0");
}

static void put_real(const struct fay_metrics *m, uint32_t c, double value)
{
	char text[32];
	fay_metric_real(text, m->view->columns[c].nanoseconds ? value / 1e9 : value);
	fprintf(m->writer->out, "%s\n", text);
}

static void put_histogram(const struct fay_metrics *m, uint32_t c, const struct fay_value *value,
			  const char *labels)
{
	uint64_t total = 0;
	char bound[48];
	for (size_t i = 0; i < value->histogram.count; i++) {
		double high;
		bool bounded = fay_metric_bucket_bound(m, c, value, i, &high);
		total += value->histogram.buckets[i];
		if (!fay_metric_bucket_is_shown(value, i) || !bounded)
			continue;
		bound_label(bound, "le", high);
		put_sample_name(m, c, "_bucket", labels, bound);
		fprintf(m->writer->out, "%" PRIu64 "\n", total);
	}
	put_sample_name(m, c, "_bucket", labels, "le=\"+Inf\"");
	fprintf(m->writer->out, "%" PRIu64 "\n", total);
}

/* Quantiles, or the most frequent values with how often they were counted. */
static void put_list(const struct fay_metrics *m, uint32_t c, const struct fay_metric_line *line)
{
	const struct fay_schema_column *column = m->view->columns[c].column;
	struct fay_item item;
	char label[48];
	for (size_t i = 0; fay_value_item(column, line->row, i, &item); i++) {
		if (item.label) { /* p50, p99.9 */
			bound_label(label, "quantile", strtod(item.label + 1, NULL) / 100);
			put_sample_name(m, c, "", line->labels, label);
			put_real(m, c, item.value);
			continue;
		}
		snprintf(label, sizeof(label),
			 column->type == FAY_TYPE_I64 ? "value=\"%" PRId64 "\""
						      : "value=\"%" PRIu64 "\"",
			 item.key);
		put_sample_name(m, c, "", line->labels, label);
		fprintf(m->writer->out, "%" PRIu64 "\n", item.count);
	}
}

static void put_samples(const struct fay_metrics *m, uint32_t c, const struct fay_metric_line *line)
{
	const struct fay_view_column *column = &m->view->columns[c];
	struct fay_value value;
	char label[48] = "";
	if (!fay_value_decode(column->column, line->row, &value))
		return;
	if (value.kind == FAY_VALUE_HISTOGRAM || value.kind == FAY_VALUE_LIST) {
		if (value.kind == FAY_VALUE_HISTOGRAM)
			put_histogram(m, c, &value, line->labels);
		else
			put_list(m, c, line);
		return;
	}
	if (column->is_quantile)
		bound_label(label, "quantile", column->quantile);
	put_sample_name(m, c, m->kinds[c] == FAY_METRIC_COUNTER ? "_total" : "", line->labels,
			label);
	if (value.kind == FAY_VALUE_DOUBLE || column->nanoseconds)
		put_real(m, c,
			 value.kind == FAY_VALUE_DOUBLE ? value.d
			 : value.kind == FAY_VALUE_I64  ? (double)value.i64
							: (double)value.u64);
	else
		fprintf(m->writer->out,
			value.kind == FAY_VALUE_I64 ? "%" PRId64 "\n" : "%" PRIu64 "\n", value.u64);
}

/* --- a view --- */

/* The query on one line. OpenMetrics wants quotes escaped where the format before it does not: they
 * are single ones. */
static void put_help(FILE *out, const char *query)
{
	char *text = strdup(query);
	for (char *at = text; at && *at; at++)
		*at = *at == '"' ? '\'' : *at == '\n' || *at == '\t' ? ' ' : *at;
	put_escaped(out, text ? text : "", text ? strlen(text) : 0);
	fputc('\n', out);
	free(text);
}

static void put_family(const struct fay_metrics *m, uint32_t c)
{
	FILE *out = m->writer->out;
	fprintf(out, "# TYPE %s %s\n", m->names[c], types[m->kinds[c]]);
	if (m->view->columns[c].nanoseconds)
		fprintf(out, "# UNIT %s seconds\n", m->names[c]);
	fprintf(out, "# HELP %s ", m->names[c]);
	put_help(out, m->writer->query ? m->writer->query : "a probe image");
	for (size_t i = 0; i < m->count; i++)
		put_samples(m, c, &m->lines[i]);
}

static void put_losses(const struct fay_metrics *m, const struct fay_result *result)
{
	char name[FAY_METRIC_NAME];
	fay_metrics_prefix(m, name);
	fprintf(m->writer->out,
		"# TYPE %s_lost_events counter\n"
		"# HELP %s_lost_events Events that were not counted\n"
		"%s_lost_events_total %" PRIu64 "\n",
		name, name, name, fay_metrics_lost(result));
	fprintf(m->writer->out,
		"# TYPE %s_rows_left_out gauge\n"
		"# HELP %s_rows_left_out Rows beyond %u samples, or with the labels of another\n"
		"%s_rows_left_out %zu\n",
		name, name, FAY_METRIC_SAMPLES, name, m->left_out);
}

void fay_output_openmetrics(struct fay_writer *writer, const struct fay_view *view,
			    const struct fay_result *result, bool final)
{
	static const struct fay_metric_format format = { put_label, .seconds = true };
	struct fay_metrics m;
	if (!fay_metrics_init(&m, &format, writer, view, result))
		return;
	for (uint32_t c = 0; c < view->column_count; c++)
		if (m.kinds[c] > FAY_METRIC_LABEL)
			put_family(&m, c);
	put_losses(&m, result);
	fay_metrics_deinit(&m);
}

void fay_output_openmetrics_end(struct fay_writer *writer, bool final)
{
	fputs("# EOF\n", writer->out);
}
