/* SPDX-License-Identifier: MIT */
/*
 * Aggregates as a plain reference computes them: from all values, which it keeps. Of those that a
 * result only estimates it knows how far off the estimate may be, as docs/faylinq.md and
 * fay/sketch.h say.
 */
#ifndef FAY_TESTS_QUERY_SUMMARIES_H
#define FAY_TESTS_QUERY_SUMMARIES_H

#include "cells.h"

enum kind {
	COUNT,
	COUNT_IF,
	SUM,
	MIN,
	MAX,
	FIRST,
	LAST,
	AVERAGE,
	ANY,
	ALL,
	STDDEV,
	TOP,
	HISTOGRAM,
	QUANTILE,
	DISTINCT,
	KINDS
};
#define GIVES_INTEGER(kind) ((kind) <= LAST)
#define IS_TEST(kind) ((kind) == COUNT_IF || (kind) == ANY || (kind) == ALL) /* of a condition */
#define IS_BOOL(kind) ((kind) == ANY || (kind) == ALL)

extern const char *const aggregate_names[KINDS];

/* What an aggregate sees of one event. */
struct sample {
	int64_t value;
	uint64_t time;
};

/* `percent`: of QUANTILE. A list lies in memory that forget_tallies() uses again. */
struct cell aggregate_samples(enum kind kind, unsigned percent, const struct sample *samples,
			      size_t count);
void forget_tallies(void);
/* DISTINCT of values of which a sample's value is a number only: equal ones have the same. */
struct cell mean_of(const struct sample *samples, size_t count);
struct cell distinct_names(const struct sample *samples, size_t count);

#endif
