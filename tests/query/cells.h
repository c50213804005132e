/* SPDX-License-Identifier: MIT */
/* Values of results, decoded and computed by a plain reference. */
#ifndef FAY_TESTS_QUERY_CELLS_H
#define FAY_TESTS_QUERY_CELLS_H

#include "fay/aggregator.h"
#include "running.h"

/* How often a value came. */
struct tally {
	int64_t value;
	uint64_t count;
};
/* Of the reference: each value, and how often it came. Of a result: what TopK held. */
struct tallies {
	uint64_t total, error, k; /* error, k: of a result */
	size_t count;
	const struct tally *tallies;
};

struct cell {
	enum { NONE, INTEGER, WORD, REAL, STRING, LIST } kind; /* WORD: unsigned */
	int64_t integer;
	double real;
	char string[FAY_COMM_SIZE + 1];
	struct tallies list;
};

enum kind { COUNT, COUNT_IF, SUM, MIN, MAX, FIRST, LAST, AVERAGE, ANY, ALL, TOP, KINDS };
#define GIVES_INTEGER(a) ((a).kind <= LAST)

extern const char *const aggregate_names[KINDS];

/* What an aggregate sees of one event. */
struct sample {
	int64_t value;
	uint64_t time;
};

struct cell integer_cell(int64_t x);
/* Below, equal or above; NONE comes first. */
int compare_cells(const struct cell *x, const struct cell *y);
/* Of a LIST: whether it is within its bounds. */
bool equal_cells(const struct cell *want, const struct cell *got);
/* A LIST's tallies lie in memory that forget_tallies() uses again. */
void forget_tallies(void);
struct cell aggregate_samples(enum kind kind, const struct sample *samples, size_t count);
/* Column `index` of the plan's result in a row. */
struct cell cell_of(const struct fay_plan *plan, const struct fay_schema *schema, const uint8_t *row, uint32_t index);

#endif
