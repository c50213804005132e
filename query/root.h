/* SPDX-License-Identifier: MIT */
/*
 * The root stage: what is done with the merged rows where the query was asked. Conditions on aggregates, computing with them, order,
 * Take, Skip, Distinct, aggregates over groups.
 */
#ifndef FAY_QUERY_ROOT_H
#define FAY_QUERY_ROOT_H

#include "plan.h"

/* A value at the root. NONE: of nothing, as the minimum of no event; whatever is computed with it is NONE, comparisons are false. */
struct fay_cell {
	enum { CELL_NONE, CELL_INT, CELL_REAL, CELL_STRING } kind;
	int64_t integer; /* also BOOL, TIME, FUNCTION */
	double real;
	const char *string; /* FAY_COMM_SIZE bytes, NUL padded */
};

struct fay_evaluator {
	const struct fay_plan_private *p;
	const uint8_t *row;
	struct fay_cell folded; /* what EXPR_FOLDED means */
};

/* `expr` of the row. Recursion is bounded by FAY_QUERY_MAX_DEPTH. */
/* -1, 0, 1 by bytes. */
int fay_cell_compare_strings(struct fay_cell x, struct fay_cell y);
struct fay_cell fay_evaluate(const struct fay_evaluator *evaluator, const struct fay_expr *expr);

#endif
