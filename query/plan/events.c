/* SPDX-License-Identifier: MIT */
/*
 * Windows of so many events. Which window an event lies in is known only once the events of all
 * threads are in order, so the probe applies the conditions that stand before the window, computes
 * what a window needs of the event, other conditions included, and hands it on with its time; the
 * aggregator puts the rows in order (fay_order) and counts them, and what an event adds to its
 * window is interpreted (query/evaluate/stage.c).
 */
#include "planner_private.h"

#include <string.h>

/* A column for what the probe computes of an event; a constant needs none. */
static bool need(struct fay_planner *source, const struct fay_expr *expr)
{
	if (!expr || fay_expr_is_constant(expr) || expr->op == EXPR_WINDOW)
		return true;
	const char *name =
		fay_query_format(source->query, "column_%u", source->private_plan->keys + 1);
	return name && fay_planner_key(source, expr, name) >= 0;
}

static bool need_all(struct fay_planner *source, const struct fay_plan_private *windows)
{
	for (const struct fay_filter *filter = windows->checked.filters; filter;
	     filter = filter->next)
		if (!need(source, filter->expr))
			return false;
	for (uint32_t i = 0; i < windows->keys; i++)
		if (!need(source, windows->columns[i].expr))
			return false;
	for (uint32_t i = windows->keys; i < windows->keys + windows->values; i++) {
		const struct fay_aggregate *aggregate = windows->columns[i].expr->aggregate;
		if (!need(source, aggregate->operand) || !need(source, aggregate->condition))
			return false;
	}
	return true;
}

/* How an event is read: its window's number, then the source's row. */
static bool describe_events(struct fay_planner *planner, const struct fay_plan_private *windows)
{
	struct fay_plan_events *events = windows->events;
	const struct fay_plan_private *source = events->source;
	events->column_of = fay_query_alloc(planner->query, (planner->exprs->count + 1u) *
								    sizeof(*events->column_of));
	if (!events->column_of)
		return false;
	events->columns[0] = (struct fay_schema_column){
		.name = "window", .type = FAY_TYPE_I64, .merge = FAY_MERGE_KEY, .size = 8
	};
	events->column_of[windows->checked.window.key->id] = 1;
	for (uint32_t i = 0; i < source->keys; i++) {
		events->columns[i + 1] = source->schema[i];
		events->columns[i + 1].offset += 8;
		events->column_of[source->columns[i].expr->id] = i + 2;
	}
	return true;
}

bool fay_planner_events(struct fay_planner *planner)
{
	struct fay_plan_private *windows = planner->private_plan;
	struct fay_plan_private *source = fay_query_alloc(planner->query, sizeof(*source));
	const struct fay_expr *time = fay_expr_time(planner->exprs);
	windows->events = fay_query_alloc(planner->query, sizeof(*windows->events));
	if (!source || !time || !windows->events)
		return false;
	windows->events->source = source;
	source->query = planner->query;
	source->checked = windows->checked;
	source->kind = FAY_STATE_STREAM;
	source->checked.filters = windows->checked.window.before;
	fay_plan_find_saved(source, planner->query->saved);
	struct fay_planner stage = *planner;
	stage.private_plan = source;
	if (fay_planner_key(&stage, time, "time") < 0 || !need_all(&stage, windows) ||
	    !fay_planner_lay_out(&stage))
		return false;
	fay_planner_fill_spec(&stage);
	struct fay_plan *plan = planner->plan;
	plan->event_size = source->row_size;
	plan->event_time_offset = source->columns[0].offset;
	uint64_t end = fay_planner_deadline(source);
	plan->deadline = end && (!plan->deadline || end < plan->deadline) ? end : plan->deadline;
	return fay_planner_prepare_rows(&stage) && describe_events(planner, windows);
}
