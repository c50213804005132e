/* SPDX-License-Identifier: MIT */
/*
 * A result as metrics: keys are labels, other columns metrics. openmetrics.c and otlp.c write them.
 *
 * Whoever is traced chooses names and how many groups there are. So there is a limit of samples, of
 * a label's length too, and no two rows may have the same labels: what is left out is counted.
 */
#ifndef FAY_CLI_OUTPUT_METRICS_H
#define FAY_CLI_OUTPUT_METRICS_H

#include "output_parts.h"

#define FAY_METRIC_SAMPLES 10000u
#define FAY_METRIC_LABEL_SIZE 1000u /* bytes of a label's value, before they are escaped */
#define FAY_METRIC_NAME 640u

enum fay_metric {
	FAY_METRIC_NOTHING,
	FAY_METRIC_LABEL,
	FAY_METRIC_COUNTER,
	FAY_METRIC_GAUGE,
	FAY_METRIC_HISTOGRAM,
	FAY_METRIC_SUMMARY,
	FAY_METRIC_MOST,
};

struct fay_metric_line {
	char *labels; /* as put_label() writes them */
	const uint8_t *row;
};

/* What a format is about metrics. */
struct fay_metric_format {
	void (*put_label)(FILE *out, const char *name, const char *text, size_t size, bool first);
	bool seconds; /* the name of a span of time says that it is in seconds */
};

struct fay_metrics {
	const struct fay_writer *writer;
	const struct fay_view *view;
	const struct fay_metric_format *format;
	enum fay_metric *kinds; /* of columns, and their names */
	char (*names)[FAY_METRIC_NAME];
	struct fay_metric_line *lines; /* of rows that are shown, by their labels */
	size_t count, left_out;
};

/* false: out of memory, which was said. */
bool fay_metrics_init(struct fay_metrics *metrics, const struct fay_metric_format *format,
		      const struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result);
void fay_metrics_deinit(struct fay_metrics *metrics);
/* What is in front of its metrics' names: "fay_reads". */
void fay_metrics_prefix(const struct fay_metrics *metrics, char name[FAY_METRIC_NAME]);
uint64_t fay_metrics_lost(const struct fay_result *result);
/* A bucket is shown if it, or the next one, has values: where these begin is known then. Buckets
 * that were shown once always are. */
bool fay_metric_bucket_is_shown(const struct fay_value *value, size_t bucket);
/* Its inclusive upper bound; false: it has none. */
bool fay_metric_bucket_bound(const struct fay_metrics *metrics, uint32_t column,
			     const struct fay_value *value, size_t bucket, double *bound);
/* "12", "-Inf", as many digits as it has. */
void fay_metric_real(char text[32], double value);

#endif
