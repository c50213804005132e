/* SPDX-License-Identifier: MIT */
/* Between the files of the planner: laying out what one stage of a plan keeps. */
#ifndef FAY_QUERY_PLAN_PLANNER_PRIVATE_H
#define FAY_QUERY_PLAN_PLANNER_PRIVATE_H

#include "plan.h"

struct fay_planner {
	struct fay_plan *plan;
	struct fay_plan_private *private_plan; /* the stage */
	struct fay_checked *checked;           /* the whole query, and its expressions */
	struct fay_exprs *exprs;
	struct fay_query *query;
	struct fay_span span; /* of the whole query, for errors about its shape */
};

/* Index of the key column that holds expr, added if need be; -1 with the error recorded. */
int fay_planner_key(struct fay_planner *planner, const struct fay_expr *expr, const char *name);
/* One more column of the result. */
bool fay_planner_output(struct fay_planner *planner, const struct fay_expr *expr, const char *name);
/* An event, of a join's side if `side` is not 0, as columns of the result, "prefix.field"; whole.c.
 * */
bool fay_planner_event(struct fay_planner *planner, const char *prefix, unsigned side);
/* All that is known of an event, as columns of the stage of a join's side, for --save. `pairs` is
 * that of the pairs. */
bool fay_planner_whole_side(struct fay_planner *stage, struct fay_planner *pairs, unsigned side);
/*
 * Index of the value column that holds an aggregate, added if need be; if there are too many the
 * error is recorded, and fay_planner_lay_out() fails. Values are collected behind the room for
 * keys, and moved down by fay_planner_lay_out().
 */
uint32_t fay_planner_value(struct fay_planner *planner, const struct fay_expr *expr,
			   const char *name);
/* The columns of the stage that are needed to compute `expr` of its rows; depth is bounded by
 * FAY_QUERY_MAX_DEPTH. */
bool fay_planner_need(struct fay_planner *planner, const struct fay_expr *expr);
/* Offsets of the row, and how many rows a table gets. */
bool fay_planner_lay_out(struct fay_planner *planner);
/* The stage's state and its columns, as they stand in an image. */
void fay_planner_fill_state(struct fay_plan_private *p);
/* What the stage's rows are read with. */
bool fay_planner_prepare_rows(struct fay_planner *planner);
/* The stage's probes, state and columns, as they stand in an image; `symbols` are for calls that
 * return and for those that end by an exception. */
void fay_planner_fill_stage(struct fay_planner *planner, const char *const symbols[2]);
/* The image's memory for stacks, if events of the stage have any. */
void fay_planner_stacks(struct fay_planner *planner);
/* The time at which the last event can pass the filters; 0: none. */
uint64_t fay_planner_deadline(const struct fay_plan_private *p);
/* The image's probes and states: of the stage in the probe. */
void fay_planner_fill_spec(struct fay_planner *planner);
/* Whether what the query says of full rings goes with it. */
bool fay_planner_when_full(struct fay_planner *planner);
/* Finds the columns of the saved trace that the stage reads, if there is one, in events. */
void fay_plan_find_saved(struct fay_plan_private *p, const struct fay_saved *saved);
/* Whether the value is a span of time in nanoseconds, as far as its expression shows. */
bool fay_planner_is_span(const struct fay_planner *planner, const struct fay_expr *expr);
/* Windows of so many events: the stage in the probe, once that of the windows is laid out. */
bool fay_planner_events(struct fay_planner *planner);
/* Histograms and quantiles by group: whether they are kept by bucket; then rows of groups are not
 * what probes keep, and need no room for quantiles; and the stage in the probe, once that of the
 * groups is laid out. */
bool fay_planner_has_buckets(const struct fay_plan_private *p);
void fay_planner_shrink(struct fay_plan_private *p);
bool fay_planner_buckets(struct fay_planner *planner);
/* Strings that are read whole, once all is laid out: the probes' memory for them, and the states
 * that texts come by. */
bool fay_planner_texts(struct fay_planner *planner);
/* The stages in the probes of both sides of a join, once that of the pairs is laid out. */
bool fay_planner_join(struct fay_planner *planner);

#endif
