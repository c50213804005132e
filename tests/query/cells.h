/* SPDX-License-Identifier: MIT */
/* Values of results, decoded and computed by a plain reference. */
#ifndef FAY_TESTS_QUERY_CELLS_H
#define FAY_TESTS_QUERY_CELLS_H

#include "fay/aggregator.h"
#include "running.h"

struct cell {
	enum { NONE, INTEGER, WORD, REAL, STRING } kind; /* WORD: unsigned */
	int64_t integer;
	double real;
	char string[FAY_COMM_SIZE + 1];
};

enum kind { COUNT, COUNT_IF, SUM, MIN, MAX, FIRST, LAST, AVERAGE, ANY, ALL, KINDS };
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
bool equal_cells(const struct cell *want, const struct cell *got);
struct cell aggregate_samples(enum kind kind, const struct sample *samples, size_t count);
/* Column `index` of the plan's result in a row. */
struct cell cell_of(const struct fay_plan *plan, const struct fay_schema *schema, const uint8_t *row, uint32_t index);

#endif
