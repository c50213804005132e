/* SPDX-License-Identifier: MIT */
/*
 * The root stage: what is done with the merged rows where the query was asked. Conditions on
 * aggregates, computing with them, order, Take, Skip, Distinct, aggregates over groups; and stages
 * outside the probe, which are interpreted. What it offers is in fay/query.h: fay_plan_finish(),
 * fay_plan_window(), fay_plan_event(), fay_pairs_add().
 */
#ifndef FAY_QUERY_EVALUATE_EVALUATE_PRIVATE_H
#define FAY_QUERY_EVALUATE_EVALUATE_PRIVATE_H

#include "query/plan/plan.h"

/* A value at the root. NONE: of nothing, as the minimum of no event; whatever is computed with it
 * is NONE, comparisons are false. */
struct fay_cell {
	enum { CELL_NONE, CELL_INT, CELL_REAL, CELL_STRING } kind;
	int64_t integer; /* also BOOL, TIME, FUNCTION */
	double real;
	const char *string; /* `integer` bytes */
	/* STRING: as it is in a row, where it may stand for a text; NULL: it is no longer than
	 * that */
	const uint8_t *raw;
};

struct fay_evaluator {
	const struct fay_texts *texts; /* what cells of rows stand for; NULL: they are strings */
	const struct fay_schema_column *columns;
	const uint32_t *column_of; /* by expression id: column + 1, or 0 */
	const uint8_t *row;
	/* The rows that quantiles of `row` are in, by bucket; NULL: they are in `row` itself. */
	const struct fay_plan_buckets *buckets;
	const struct fay_result *by_bucket;
	uint64_t number;        /* what EXPR_ROW means */
	struct fay_cell folded; /* what EXPR_FOLDED means */
	/* What EXPR_LABEL means: by the row's place among all of the stage; NULL: there are none.
	 * */
	const uint32_t *labels;
	const uint8_t *first_row;
	size_t row_size;
};

/* A real number; NONE if it is none, or infinite. */
struct fay_cell fay_cell_real(double value);
/* -1, 0, 1 by bytes. */
int fay_cell_compare_strings(struct fay_cell x, struct fay_cell y);
/* `expr` of the row. Recursion is bounded by FAY_QUERY_MAX_DEPTH. */
struct fay_cell fay_evaluate(const struct fay_evaluator *evaluator, const struct fay_expr *expr);

/* Whether all conditions of the list hold. */
bool fay_stage_all_hold(const struct fay_evaluator *evaluator, const struct fay_filter *filter);
/* Puts a value into its column of the row at `at`, whose bytes there are zero. */
void fay_stage_store(uint8_t *at, const struct fay_layout_column *column, struct fay_cell cell);
/* The row of stage `p` that what `evaluator` sees adds: keys, and partial aggregates of one.
 * `time`: of First and Last, unless they have their own. */
void fay_stage_row(const struct fay_plan_private *p, const struct fay_evaluator *evaluator,
		   uint64_t time, uint8_t *row);
/* Rows of the stage before, which `before` reads, grouped by stage `p`. *out is to be given to
 * fay_result_deinit(). */
int fay_stage_group(struct fay_plan_private *p, struct fay_evaluator *before,
		    const uint8_t *const *rows, size_t count, struct fay_result *out,
		    struct fay_error *error);

/* Rows by bucket, in the order of their keys, become rows of stage `p`. *out is to be given to
 * fay_result_deinit(). */
/* Such a row's quantile, of column `index`. */
double fay_buckets_quantile(const struct fay_evaluator *evaluator, uint32_t index, double q);
int fay_buckets_fold(const struct fay_plan_private *p, const struct fay_result *rows,
		     struct fay_result *out, struct fay_error *error);

#endif
