/* SPDX-License-Identifier: MIT */
/*
 * Results by the text format of OpenMetrics 1.0, which Prometheus scrapes: keys are labels, other
 * columns metric families. Spans of time are in seconds, as the format asks. Histograms have no
 * _sum, which nobody has added up, and so no _count either; the last bucket is the count.
 *
 * Whoever is traced chooses names and how many groups there are. So there is a limit of samples, of
 * a label's length too, and no two rows may have the same labels: what is left out is counted in a
 * family of its own.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fay/utf8.h"

#include "output_parts.h"

#define SAMPLES_MAX 10000u
#define LABEL_MAX 1000u /* bytes of a label's value, before they are escaped */
#define NAME_SIZE 640u

enum kind { NOTHING, LABEL, COUNTER, GAUGE, HISTOGRAM, SUMMARY, MOST };

static const char *const types[] = {
	[COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram",
	[SUMMARY] = "summary", [MOST] = "gauge",
};

struct line {
	char *labels;
	const uint8_t *row;
};

struct metrics {
	const struct fay_writer *writer;
	const struct fay_view *view;
	enum kind *kinds; /* of columns, and their names */
	char (*names)[NAME_SIZE];
	struct line *lines; /* of rows that are shown */
	size_t count, left_out;
};

static enum kind kind_of(const struct fay_writer *writer, const struct fay_view_column *column)
{
	unsigned merge = column->column->merge, type = column->column->type;
	bool text = type == FAY_TYPE_STRING || type == FAY_TYPE_FUNCTION;
	if (merge == FAY_MERGE_KEY || column->stack_frames ||
	    (merge == (uint16_t)FAY_RESULT_COMPUTED && text))
		return LABEL;
	if (fay_output_is_histogram(column))
		return HISTOGRAM;
	if (merge == FAY_MERGE_QUANTILE || column->is_quantile)
		return SUMMARY;
	if (merge == FAY_MERGE_TOP)
		return MOST;
	if (merge == FAY_MERGE_SAMPLE || (text && merge != FAY_MERGE_DISTINCT))
		return NOTHING;
	bool grows = merge == FAY_MERGE_COUNT || (merge == FAY_MERGE_SUM && type == FAY_TYPE_U64);
	return grows && !writer->revocable ? COUNTER : GAUGE;
}

/* --- names --- */

static void add_name(char name[NAME_SIZE], const char *text)
{
	size_t used = strlen(name);
	for (; *text && used < NAME_SIZE - 16; text++) {
		bool fits = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
			    (*text >= 'A' && *text <= 'Z');
		name[used++] = fits ? *text : '_';
	}
	name[used] = 0;
}

static bool is_taken(const struct metrics *m, uint32_t column)
{
	for (uint32_t c = 0; c < column; c++)
		if ((m->kinds[c] == LABEL) == (m->kinds[column] == LABEL) &&
		    !strcmp(m->names[c], m->names[column]))
			return true;
	return false;
}

/* A label may not begin with a digit or with `__`, nor be one that the format adds. */
static void name_column(struct metrics *m, uint32_t c)
{
	const struct fay_view_column *column = &m->view->columns[c];
	const char *text = column->name;
	char *name = m->names[c];
	if (m->kinds[c] == LABEL) {
		if (!*text || (*text >= '0' && *text <= '9') || !strncmp(text, "__", 2) ||
		    !strcmp(text, "le") || !strcmp(text, "quantile"))
			add_name(name, "key_");
		add_name(name, text);
	} else {
		add_name(name, m->writer->metrics ? m->writer->metrics : "fay");
		if (m->view->title) {
			add_name(name, "_");
			add_name(name, m->view->title);
		}
		add_name(name, "_");
		add_name(name, text);
		if (column->nanoseconds)
			strcat(name, "_seconds");
	}
	size_t length = strlen(name);
	for (unsigned n = 2; is_taken(m, c); n++)
		sprintf(name + length, "_%u%s", n, column->nanoseconds ? "_seconds" : "");
}

/* --- labels --- */

/* What commands a terminal, or is no character, is written as in CSV: \x1b. */
static void put_escaped(FILE *out, const char *text, size_t size)
{
	bool cut = size > LABEL_MAX;
	size_t limit = cut ? LABEL_MAX : size;
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

static void put_label(const struct metrics *m, uint32_t c, const uint8_t *row, FILE *out)
{
	const struct fay_view_column *column = &m->view->columns[c];
	char *text = NULL;
	size_t size = 0;
	if (column->stack_frames) {
		text = fay_output_stack_text(m->writer, column, row);
		size = text ? strlen(text) : 0;
	} else {
		FILE *memory = open_memstream(&text, &size);
		if (memory) {
			fay_output_put_value(memory, m->writer, column, row);
			fclose(memory);
		}
	}
	fprintf(out, "%s=\"", m->names[c]);
	put_escaped(out, text ? text : "out of memory", text ? size : 13);
	fputc('"', out);
	free(text);
}

static char *labels_of(const struct metrics *m, const uint8_t *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool any = false;
	for (uint32_t c = 0; out && c < m->view->column_count; c++) {
		if (m->kinds[c] != LABEL)
			continue;
		fputs(any ? "," : "", out);
		put_label(m, c, row, out);
		any = true;
	}
	return out && !fclose(out) ? text : NULL;
}

/* --- samples --- */

/* `more`: a label beside the row's, NAME="VALUE"; "": none. */
static void put_sample_name(const struct metrics *m, uint32_t c, const char *suffix,
			    const char *labels, const char *more)
{
	bool braces = *labels || *more;
	fprintf(m->writer->out, "%s%s%s%s%s%s%s ", m->names[c], suffix, braces ? "{" : "", labels,
		*labels && *more ? "," : "", more, braces ? "}" : "");
}

static void real_text(char text[32], double value)
{
	if (!isfinite(value)) {
		strcpy(text, isnan(value) ? "NaN" : value < 0 ? "-Inf" : "+Inf");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			return;
	}
}

/* A bound as the format likes it, with a point. */
static void bound_label(char label[48], const char *name, double value)
{
	char text[32];
	real_text(text, value);
	snprintf(label, 48, "%s=\"%s%s\"", name, text, strpbrk(text, ".eIN") ? "" : ".0");
}

static void put_real(const struct metrics *m, uint32_t c, double value)
{
	char text[32];
	real_text(text, m->view->columns[c].nanoseconds ? value / 1e9 : value);
	fprintf(m->writer->out, "%s\n", text);
}

/* A bucket is shown if it, or the next one, has values: where these begin is known then. Buckets
 * that were shown once always are. */
static bool bucket_is_shown(const struct fay_value *value, size_t i)
{
	return value->histogram.buckets[i] ||
	       (i + 1 < value->histogram.count && value->histogram.buckets[i + 1]);
}

static void put_histogram(const struct metrics *m, uint32_t c, const struct fay_value *value,
			  const char *labels)
{
	const struct fay_view_column *column = &m->view->columns[c];
	uint64_t total = 0;
	char bound[48];
	for (size_t i = 0; i < value->histogram.count; i++) {
		struct fay_bucket b = fay_bucket_of(column->column, i, value->histogram.count);
		double high = b.is_signed ? (double)(int64_t)b.high : (double)b.high;
		if (i == 0 && b.is_signed) /* < low, in whole numbers */
			high = (double)((int64_t)b.low - 1);
		total += value->histogram.buckets[i];
		if (!bucket_is_shown(value, i) || (i && b.open)) /* the last one has no bound */
			continue;
		bound_label(bound, "le", column->nanoseconds ? high / 1e9 : high);
		put_sample_name(m, c, "_bucket", labels, bound);
		fprintf(m->writer->out, "%" PRIu64 "\n", total);
	}
	put_sample_name(m, c, "_bucket", labels, "le=\"+Inf\"");
	fprintf(m->writer->out, "%" PRIu64 "\n", total);
}

/* Quantiles, or the most frequent values with how often they were counted. */
static void put_list(const struct metrics *m, uint32_t c, const struct line *line)
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

static void put_samples(const struct metrics *m, uint32_t c, const struct line *line)
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
	put_sample_name(m, c, m->kinds[c] == COUNTER ? "_total" : "", line->labels, label);
	if (value.kind == FAY_VALUE_DOUBLE || column->nanoseconds)
		put_real(m, c,
			 value.kind == FAY_VALUE_DOUBLE ? value.d
			 : value.kind == FAY_VALUE_I64  ? (double)value.i64
							: (double)value.u64);
	else
		fprintf(m->writer->out,
			value.kind == FAY_VALUE_I64 ? "%" PRId64 "\n" : "%" PRIu64 "\n", value.u64);
}

/* How many samples a row is. */
static size_t samples_of(const struct metrics *m, const uint8_t *row)
{
	size_t samples = 0;
	for (uint32_t c = 0; c < m->view->column_count; c++) {
		const struct fay_schema_column *column = m->view->columns[c].column;
		struct fay_value value;
		if (m->kinds[c] <= LABEL || !fay_value_decode(column, row, &value))
			continue;
		samples += value.kind == FAY_VALUE_LIST ? value.list.count : 1;
		for (size_t i = 0; m->kinds[c] == HISTOGRAM && i < value.histogram.count; i++)
			samples += bucket_is_shown(&value, i);
	}
	return samples;
}

/* --- a view --- */

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;
	int labels = strcmp(a->labels, b->labels);
	return labels ? labels : a->row < b->row ? -1 : a->row > b->row;
}

/* The rows that are shown, by their labels. */
static void take_rows(struct metrics *m, const struct fay_result *result)
{
	size_t samples = 0, kept = 0;
	for (size_t r = 0; r < result->row_count; r++) {
		struct line line = { .row = result->rows + r * result->row_size };
		samples += samples_of(m, line.row);
		line.labels = samples <= SAMPLES_MAX ? labels_of(m, line.row) : NULL;
		if (!line.labels)
			break;
		m->lines[m->count++] = line;
	}
	if (m->count)
		qsort(m->lines, m->count, sizeof(*m->lines), compare_lines);
	for (size_t i = 0; i < m->count; i++) {
		if (kept && !strcmp(m->lines[kept - 1].labels, m->lines[i].labels))
			free(m->lines[i].labels);
		else
			m->lines[kept++] = m->lines[i];
	}
	m->count = kept;
	m->left_out = result->row_count - kept;
}

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

static void put_family(const struct metrics *m, uint32_t c)
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

static void put_losses(const struct metrics *m, const struct fay_result *result)
{
	char name[NAME_SIZE] = "";
	add_name(name, m->writer->metrics ? m->writer->metrics : "fay");
	if (m->view->title) {
		add_name(name, "_");
		add_name(name, m->view->title);
	}
	fprintf(m->writer->out,
		"# TYPE %s_lost_events counter\n"
		"# HELP %s_lost_events Events that were not counted\n"
		"%s_lost_events_total %" PRIu64 "\n",
		name, name, name,
		result->events_lost_reentrant + result->events_lost_full +
			result->events_lost_no_slot + result->calls_lost);
	fprintf(m->writer->out,
		"# TYPE %s_rows_left_out gauge\n"
		"# HELP %s_rows_left_out Rows beyond %u samples, or with the labels of another\n"
		"%s_rows_left_out %zu\n",
		name, name, SAMPLES_MAX, name, m->left_out);
}

void fay_output_openmetrics(struct fay_writer *writer, const struct fay_view *view,
			    const struct fay_result *result, bool final)
{
	struct metrics m = { .writer = writer, .view = view };
	m.kinds = calloc(view->column_count + 1u, sizeof(*m.kinds));
	m.names = calloc(view->column_count + 1u, sizeof(*m.names));
	m.lines = calloc(result->row_count + 1, sizeof(*m.lines));
	if (m.kinds && m.names && m.lines) {
		for (uint32_t c = 0; c < view->column_count; c++) {
			m.kinds[c] = kind_of(writer, &view->columns[c]);
			name_column(&m, c);
		}
		take_rows(&m, result);
		for (uint32_t c = 0; c < view->column_count; c++)
			if (m.kinds[c] > LABEL)
				put_family(&m, c);
		put_losses(&m, result);
	} else {
		fputs("fay: out of memory for the metrics\n", stderr);
	}
	for (size_t i = 0; i < m.count; i++)
		free(m.lines[i].labels);
	free(m.lines);
	free(m.names);
	free(m.kinds);
}

void fay_output_openmetrics_end(struct fay_writer *writer, bool final)
{
	fputs("# EOF\n", writer->out);
}
