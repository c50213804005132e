/* SPDX-License-Identifier: MIT */
/* What columns are as metrics, how these are called, and which rows are shown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

static enum fay_metric kind_of(const struct fay_writer *writer,
			       const struct fay_view_column *column)
{
	unsigned merge = column->column->merge, type = column->column->type;
	bool text = type == FAY_TYPE_STRING || type == FAY_TYPE_FUNCTION;
	if (merge == FAY_MERGE_KEY || column->stack_frames ||
	    (merge == (uint16_t)FAY_RESULT_COMPUTED && text))
		return FAY_METRIC_LABEL;
	if (fay_output_is_histogram(column))
		return FAY_METRIC_HISTOGRAM;
	if (merge == FAY_MERGE_QUANTILE || column->is_quantile)
		return FAY_METRIC_SUMMARY;
	if (merge == FAY_MERGE_TOP)
		return FAY_METRIC_MOST;
	if (merge == FAY_MERGE_SAMPLE || (text && merge != FAY_MERGE_DISTINCT))
		return FAY_METRIC_NOTHING;
	bool grows = merge == FAY_MERGE_COUNT || (merge == FAY_MERGE_SUM && type == FAY_TYPE_U64);
	return grows && !writer->revocable ? FAY_METRIC_COUNTER : FAY_METRIC_GAUGE;
}

/* --- names --- */

static void add_name(char name[FAY_METRIC_NAME], const char *text)
{
	size_t used = strlen(name);
	for (; *text && used < FAY_METRIC_NAME - 16; text++) {
		bool fits = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
			    (*text >= 'A' && *text <= 'Z');
		name[used++] = fits ? *text : '_';
	}
	name[used] = 0;
}

static bool is_taken(const struct fay_metrics *m, uint32_t column)
{
	for (uint32_t c = 0; c < column; c++)
		if ((m->kinds[c] == FAY_METRIC_LABEL) == (m->kinds[column] == FAY_METRIC_LABEL) &&
		    !strcmp(m->names[c], m->names[column]))
			return true;
	return false;
}

/* A label may not begin with a digit or with `__`, nor be one that the format adds. */
static void name_column(struct fay_metrics *m, uint32_t c)
{
	const struct fay_view_column *column = &m->view->columns[c];
	const char *text = column->name;
	char *name = m->names[c];
	if (m->kinds[c] == FAY_METRIC_LABEL) {
		if (!*text || (*text >= '0' && *text <= '9') || !strncmp(text, "__", 2) ||
		    !strcmp(text, "le") || !strcmp(text, "quantile"))
			add_name(name, "key_");
		add_name(name, text);
	} else {
		fay_metrics_prefix(m, name);
		add_name(name, "_");
		add_name(name, text);
		if (column->nanoseconds && m->format->seconds)
			strcat(name, "_seconds");
	}
	size_t length = strlen(name);
	for (unsigned n = 2; is_taken(m, c); n++)
		sprintf(name + length, "_%u%s", n,
			column->nanoseconds && m->format->seconds ? "_seconds" : "");
}

/* --- labels --- */

static void put_label(const struct fay_metrics *m, uint32_t c, const uint8_t *row, bool first,
		      FILE *out)
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
	m->format->put_label(out, m->names[c], text ? text : "out of memory", text ? size : 13,
			     first);
	free(text);
}

static char *labels_of(const struct fay_metrics *m, const uint8_t *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool first = true;
	for (uint32_t c = 0; out && c < m->view->column_count; c++) {
		if (m->kinds[c] != FAY_METRIC_LABEL)
			continue;
		put_label(m, c, row, first, out);
		first = false;
	}
	return out && !fclose(out) ? text : NULL;
}

/* --- samples --- */

void fay_metric_real(char text[32], double value)
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

bool fay_metric_bucket_is_shown(const struct fay_value *value, size_t i)
{
	return value->histogram.buckets[i] ||
	       (i + 1 < value->histogram.count && value->histogram.buckets[i + 1]);
}

bool fay_metric_bucket_bound(const struct fay_metrics *m, uint32_t c, const struct fay_value *value,
			     size_t i, double *bound)
{
	const struct fay_view_column *column = &m->view->columns[c];
	struct fay_bucket b = fay_bucket_of(column->column, i, value->histogram.count);
	double high = b.is_signed ? (double)(int64_t)b.high : (double)b.high;
	if (i == 0 && b.is_signed) /* < low, in whole numbers */
		high = (double)((int64_t)b.low - 1);
	*bound = column->nanoseconds ? high / 1e9 : high;
	return !i || !b.open; /* the last one has no bound */
}

/* How many samples a row is. */
static size_t samples_of(const struct fay_metrics *m, const uint8_t *row)
{
	size_t samples = 0;
	for (uint32_t c = 0; c < m->view->column_count; c++) {
		const struct fay_schema_column *column = m->view->columns[c].column;
		struct fay_value value;
		if (m->kinds[c] <= FAY_METRIC_LABEL || !fay_value_decode(column, row, &value))
			continue;
		samples += value.kind == FAY_VALUE_LIST ? value.list.count : 1;
		for (size_t i = 0; m->kinds[c] == FAY_METRIC_HISTOGRAM && i < value.histogram.count;
		     i++)
			samples += fay_metric_bucket_is_shown(&value, i);
	}
	return samples;
}

/* --- a view --- */

static int compare_lines(const void *left, const void *right)
{
	const struct fay_metric_line *a = left, *b = right;
	int labels = strcmp(a->labels, b->labels);
	return labels ? labels : a->row < b->row ? -1 : a->row > b->row;
}

/* The rows that are shown, by their labels. */
static void take_rows(struct fay_metrics *m, const struct fay_result *result)
{
	size_t samples = 0, kept = 0;
	for (size_t r = 0; r < result->row_count; r++) {
		struct fay_metric_line line = { .row = result->rows + r * result->row_size };
		samples += samples_of(m, line.row);
		line.labels = samples <= FAY_METRIC_SAMPLES ? labels_of(m, line.row) : NULL;
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

void fay_metrics_prefix(const struct fay_metrics *m, char name[FAY_METRIC_NAME])
{
	*name = 0;
	add_name(name, m->writer->metrics ? m->writer->metrics : "fay");
	if (m->view->title) {
		add_name(name, "_");
		add_name(name, m->view->title);
	}
}

uint64_t fay_metrics_lost(const struct fay_result *result)
{
	return result->events_lost_reentrant + result->events_lost_full +
	       result->events_lost_no_slot + result->calls_lost;
}

bool fay_metrics_init(struct fay_metrics *m, const struct fay_metric_format *format,
		      const struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result)
{
	*m = (struct fay_metrics){ .writer = writer, .view = view, .format = format };
	m->kinds = calloc(view->column_count + 1u, sizeof(*m->kinds));
	m->names = calloc(view->column_count + 1u, sizeof(*m->names));
	m->lines = calloc(result->row_count + 1, sizeof(*m->lines));
	if (!m->kinds || !m->names || !m->lines) {
		fputs("fay: out of memory for the metrics\n", stderr);
		fay_metrics_deinit(m);
		return false;
	}
	for (uint32_t c = 0; c < view->column_count; c++) {
		m->kinds[c] = kind_of(writer, &view->columns[c]);
		name_column(m, c);
	}
	take_rows(m, result);
	return true;
}

void fay_metrics_deinit(struct fay_metrics *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->lines[i].labels);
	free(m->lines);
	free(m->names);
	free(m->kinds);
}
