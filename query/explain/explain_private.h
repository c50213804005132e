/* SPDX-License-Identifier: MIT */
/* Between the files that print plans. What they offer is fay_plan_print() and its like of
 * fay/query.h. */
#ifndef FAY_QUERY_EXPLAIN_EXPLAIN_PRIVATE_H
#define FAY_QUERY_EXPLAIN_EXPLAIN_PRIVATE_H

#include "query/plan/plan.h"

bool fay_stage_is_bpf(const struct fay_plan_private *p);
const char *fay_print_event_name(const struct fay_plan_private *p);
const char *fay_print_merge_name(enum fay_merge merge);
const char *fay_print_type_name(const struct fay_plan_column *column);
/* What an aggregate is of. */
void fay_print_aggregate(FILE *out, const struct fay_plan_private *p,
			 const struct fay_aggregate *aggregate);
/* The helpers of native probes, each between `quote`s. */
void fay_print_helpers(FILE *out, const struct fay_plan_private *p, const char *quote,
		       const char *none);
void fay_print_filters(FILE *out, const struct fay_plan_private *p);
/* Keys and values, or columns of a stream. */
void fay_print_columns(FILE *out, const struct fay_plan_private *p);
/* How the rows of all `of` become one result. */
void fay_print_merge(FILE *out, const struct fay_plan_private *p, const char *of);
/* An expression as a JSON string; of an aggregate: what it is of. */
void fay_print_json_expr(FILE *out, const struct fay_plan_private *p, const struct fay_expr *expr,
			 const struct fay_aggregate *aggregate);
/* One JSON object: conditions, state, columns. */
void fay_print_json_stage(FILE *out, const struct fay_plan_private *p);
/* "entry of libc!read", a line. */
void fay_print_tracepoint(FILE *out, const struct fay_plan_private *p);
/* What one operation of the root does, how a stage there makes its rows; and either (op NULL: the
 * latter) as a JSON string behind a comma. */
void fay_print_root_op(FILE *out, const struct fay_plan_private *p, const struct fay_root_op *op);
void fay_print_grouping(FILE *out, const struct fay_plan_private *p);
void fay_print_json_op(FILE *out, const struct fay_plan_private *p, const struct fay_root_op *op,
		       bool first);
const char *fay_print_tracepoint_name(const struct fay_plan_private *p);

/* events.c: windows of so many events. */
void fay_print_events(FILE *out, const struct fay_plan *plan);
void fay_print_json_events(FILE *out, const struct fay_plan *plan);

/* join.c: where a join is done, by what, and what is done with its pairs. */
void fay_print_pairs(FILE *out, const struct fay_plan *plan);
void fay_print_json_join(FILE *out, const struct fay_plan *plan);

#endif
