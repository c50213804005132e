/* SPDX-License-Identifier: MIT */
/* Values of results: as a plain reference has them, and decoded from rows. */
#ifndef FAY_TESTS_QUERY_CELLS_H
#define FAY_TESTS_QUERY_CELLS_H

#include "fay/aggregator.h"
#include "tests/query/running.h"

/* How often a value came. */
struct tally {
	int64_t value;
	uint64_t count;
};
/* Of the reference: each value, and how often it came. Of a result: what TopK held, or a
 * histogram's buckets that are not empty, in order. */
struct tallies {
	uint64_t total, error, k; /* error, k: of a TopK's result */
	size_t count;
	const struct tally *tallies;
};

#define CELL_BYTES 40 /* of a name, or of a stack of five frames: those of tests have no more */

struct cell {
	/* WORD: unsigned. Of the reference only: ESTIMATE, an integer from `least` to `integer` */
	enum { NONE, INTEGER, WORD, REAL, STRING, TOP_LIST, HISTOGRAM_LIST, ESTIMATE } kind;
	int64_t integer, least;
	double real, slack; /* slack: of the reference, how far a result may be off */
	char string[CELL_BYTES];
	struct tallies list;
	uint64_t exact; /* of an ESTIMATE */
};

struct cell integer_cell(int64_t x);
struct cell real_cell(double x); /* as exact as doubles are */
struct cell string_cell(const void *bytes, size_t size);
/* Below, equal or above; NONE comes first. */
int compare_cells(const struct cell *x, const struct cell *y);
/* Whether a result is what the reference says; of summaries: whether it is within its bounds. */
bool equal_cells(const struct cell *want, const struct cell *got);
/* Of all estimates of numbers of different values, 40 or more, that equal_cells() has seen: the
 * root of the mean square of their relative errors, and how many there were. */
double estimates_error(size_t *count);
/* For people; in memory that is used again after four calls. */
const char *describe_cell(const struct cell *cell);
/* Column `index` of the plan's result in a row. */
struct cell cell_of(const struct fay_plan *plan, const struct fay_schema *schema,
		    const uint8_t *row, uint32_t index);

#endif
