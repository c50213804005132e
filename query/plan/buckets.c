/* SPDX-License-Identifier: MIT */
/*
 * Histograms and quantiles by group. A row that held a whole summary would take 520 or 3,840 bytes
 * for each group in each thread's table, and be nearly empty: one function's durations lie in some
 * 20 of 960 buckets. So the probe groups by the bucket that the value falls into as well, and
 * counts: a row for each bucket that occurs, of some 32 bytes. Tables, rings, machines and windows
 * merge such rows by their keys as any others; only fay_plan_finish() makes summaries of them. The
 * other aggregates of the query are kept by bucket, too, and merged there.
 */
#include "planner_private.h"

#include <string.h>

static bool is_sketch(enum fay_merge merge)
{
	return merge == FAY_MERGE_QUANTILE || merge == FAY_MERGE_HIST_LOG2;
}

/* The summary whose value's buckets the stage's rows are to be kept by: all its summaries are of
 * that value, in these buckets or in coarser ones. NULL: there is none, or of several values, or a
 * value that is too large to be kept once for each bucket. */
static const struct fay_aggregate *find_summary(const struct fay_plan_private *p)
{
	const struct fay_aggregate *found = NULL;
	for (uint32_t i = p->keys; i < p->keys + p->values; i++) {
		const struct fay_aggregate *a = p->columns[i].expr->aggregate;
		if (!is_sketch(a->merge)) {
			if (p->columns[i].size > FAY_BUCKETS_VALUE_MAX)
				return NULL;
			continue;
		}
		if (found && (found->operand != a->operand || found->condition != a->condition))
			return NULL;
		if (!found || a->merge == FAY_MERGE_QUANTILE)
			found = a;
	}
	return found;
}

bool fay_planner_has_buckets(const struct fay_plan_private *p)
{
	return p->kind == FAY_STATE_TABLE && !p->number && !p->checked.join &&
	       !p->checked.window.events && p->keys < FAY_QUERY_MAX_COLUMNS &&
	       p->values < FAY_QUERY_MAX_COLUMNS && find_summary(p);
}

void fay_planner_shrink(struct fay_plan_private *p)
{
	for (uint32_t i = p->keys; i < p->keys + p->values; i++)
		if (p->columns[i].expr->aggregate->merge == FAY_MERGE_QUANTILE)
			p->columns[i].size = FAY_BUCKETS_VALUE_MAX;
}

/* Columns as those of the rows that are shown, but for the summaries. */
static bool add_columns(struct fay_planner *stage, const struct fay_plan_private *p,
			const struct fay_expr *bucket, const struct fay_expr *count)
{
	struct fay_plan_buckets *buckets = p->buckets;
	struct fay_plan_private *source = stage->private_plan;
	for (uint32_t i = 0; i < p->keys; i++)
		if (fay_planner_key(stage, p->columns[i].expr, p->columns[i].name) != (int)i)
			return false;
	if (fay_planner_key(stage, bucket, "bucket") != (int)p->keys)
		return false;
	for (uint32_t i = 0; i < p->values; i++) {
		const struct fay_layout_column *column = &p->columns[p->keys + i];
		if (!is_sketch(column->expr->aggregate->merge))
			buckets->from[i] =
				source->keys + fay_planner_value(stage, column->expr, column->name);
	}
	buckets->key = p->keys;
	buckets->count = source->keys + fay_planner_value(stage, count, "events");
	return true;
}

bool fay_planner_buckets(struct fay_planner *planner)
{
	struct fay_plan_private *p = planner->private_plan;
	if (!fay_planner_has_buckets(p))
		return true;
	const struct fay_aggregate *summary = find_summary(p);
	struct fay_aggregate all = {
		.merge = FAY_MERGE_COUNT, .type = TYPE_INT, .text = "Count", .level = 1
	};
	const struct fay_expr *count = fay_expr_aggregate(planner->exprs, all, TYPE_INT),
			      *bucket = fay_expr_bucket(planner->exprs, summary->merge,
							summary->operand, summary->condition);
	struct fay_plan_private *source = fay_query_alloc(planner->query, sizeof(*source));
	p->buckets = fay_query_alloc(planner->query, sizeof(*p->buckets));
	if (!count || !bucket || !source || !p->buckets)
		return false;
	*p->buckets = (struct fay_plan_buckets){ .source = source, .sketch = summary->merge };
	source->query = planner->query;
	source->checked = p->checked;
	source->kind = FAY_STATE_TABLE;
	fay_plan_find_saved(source, planner->query->saved);
	struct fay_planner stage = *planner;
	stage.private_plan = source;
	if (!add_columns(&stage, p, bucket, count) || !fay_planner_lay_out(&stage))
		return false;
	if (p->checked.domain != DOMAIN_KERNEL) {
		source->first_rows = source->rows / FAY_TABLE_GROWS_FROM;
		source->rows *= FAY_TABLE_GROWS_TO;
	}
	fay_planner_fill_spec(&stage);
	return fay_planner_prepare_rows(&stage);
}
