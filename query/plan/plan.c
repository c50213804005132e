/* SPDX-License-Identifier: MIT */
/*
 * The planner: from a checked query to the layout of its state and the columns of its result.
 *
 *   one aggregate, no grouping   a CELL: its value
 *   grouped rows                 a TABLE: tag, keys, values; open addressing, flushed when it fills
 *				  up
 *   anything else                a STREAM of rows
 *
 * A selected expression over keys alone, such as `g.Key * 4`, becomes one more key column: it
 * depends on the others, so the groups stay the same.
 */
#include "planner_private.h"

#include "query/check/check.h"
#include "query/sources/sources.h"

#include "fay/stacks.h"
#include "query/runtime/compute.h"
#include "query/runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

/* Names longer than this would not fit into the image. */
#define NAME_LIMIT (FAY_IMAGE_MAX_STRING - 1)

static bool add_computed(struct fay_planner *planner, const struct fay_expr *expr,
			 struct fay_plan_column *column)
{
	struct fay_plan_private *p = planner->private_plan;
	if (!fay_planner_need(planner, expr))
		return false;
	column->source = FAY_PLAN_COMPUTED;
	column->index = p->computed_count;
	column->type = fay_type_column(expr->type);
	column->merge = FAY_RESULT_COMPUTED;
	column->is_quantile = expr->op == EXPR_QUANTILE;
	column->quantile = column->is_quantile ? expr->real : 0;
	p->computed[p->computed_count++] = expr;
	return true;
}

static bool need_for_root(struct fay_planner *planner)
{
	for (const struct fay_root_op *op = planner->private_plan->root; op; op = op->next) {
		if (op->expr && !fay_planner_need(planner, op->expr))
			return false;
		for (const struct fay_order *order = op->orders; order; order = order->next)
			if (!fay_planner_need(planner, order->expr))
				return false;
	}
	return true;
}

static void fill_stack(struct fay_plan_column *column, const struct fay_expr *expr)
{
	while (expr->type == TYPE_STACK && expr->op != EXPR_STACK) /* the key of a group */
		expr = expr->a;
	if (expr->op == EXPR_STACK) {
		column->stack_frames = (uint32_t)expr->value;
		column->kernel_stack = expr->length;
	}
}

/* By what the stage's rows are ordered before anything else; NULL. */
static const struct fay_expr *order_of(const struct fay_plan_private *stage)
{
	const struct fay_expr *expr = NULL;
	for (const struct fay_root_op *op = stage->root; op; op = op->next)
		expr = op->kind == ROOT_ORDER ? op->orders->expr : expr;
	return expr;
}

bool fay_planner_output(struct fay_planner *planner, const struct fay_expr *expr, const char *name)
{
	struct fay_plan *plan = planner->plan;
	if (plan->column_count == FAY_QUERY_MAX_COLUMNS)
		return fay_query_fail(planner->query, FAY_E_LIMIT, planner->span,
				      "a result may have at most %u columns",
				      FAY_QUERY_MAX_COLUMNS) != NULL;
	if (strlen(name) > NAME_LIMIT)
		return fay_query_fail(planner->query, FAY_E_LIMIT, planner->span,
				      "a column's name may have at most %u bytes",
				      NAME_LIMIT) != NULL;
	struct fay_plan_column *column = &plan->columns[plan->column_count];
	column->name = name;
	column->nanoseconds = fay_planner_is_span(planner, expr);
	column->orders = expr == order_of(planner->private_plan);
	if (expr->op == EXPR_AGGREGATE) {
		column->source = FAY_PLAN_VALUE;
		column->index = fay_planner_value(planner, expr, name);
		column->type = fay_type_column(expr->aggregate->type);
		column->merge = expr->aggregate->merge;
	} else if (expr->level > planner->private_plan->number) {
		if (!add_computed(planner, expr, column))
			return false;
	} else {
		int index = fay_planner_key(planner, expr, name);
		if (index < 0)
			return false;
		planner->private_plan->columns[index].name = name; /* what the result calls it */
		column->source = FAY_PLAN_KEY;
		column->index = (uint32_t)index;
		column->type = fay_type_column(expr->type);
		column->merge = FAY_MERGE_KEY;
		column->pointer = expr->enumeration == fay_pointers;
		column->maybe_pointer = fay_expr_is_register(expr);
		column->enumeration = column->pointer ? NULL : expr->enumeration;
		column->symbol = expr->type == TYPE_SYMBOL;
		column->address = expr->type == TYPE_ADDRESS || column->symbol;
		fill_stack(column, expr);
		plan->addresses |= column->address || column->stack_frames;
	}
	plan->column_count++;
	return true;
}

/* Flattens what a row is into columns; members of inner records are named "outer.inner". */
static bool add_outputs(struct fay_planner *planner, const struct fay_value_node *value,
			const char *name)
{
	switch (value->kind) {
	case VALUE_SCALAR: return fay_planner_output(planner, value->expr, *name ? name : "value");
	case VALUE_EVENT: return fay_planner_event(planner, name, value->side);
	case VALUE_RECORD:
		for (struct fay_member *m = value->members; m; m = m->next) {
			/* `g.Key` of several parts shows as the parts. */
			bool plain = !*name || strcmp(name, "Key") == 0;
			const char *full =
				plain ? m->name
				      : fay_query_format(planner->query, "%s.%s", name, m->name);
			if (!full || !add_outputs(planner, m->value, full))
				return false;
		}
		return true;
	case VALUE_OBJECT:
		fay_query_fail(planner->query, FAY_E_USAGE, planner->span,
			       "`%s` is a structure or an array: name the member to show",
			       *value->path ? value->path : name);
		return false;
	case VALUE_GROUP:
		fay_query_fail(planner->query, FAY_E_USAGE, planner->span,
			       "a group has no value of its own: select what to show, as in "
			       "`select new { g.Key, count = g.Count() }`");
		return false;
	default:
		fay_query_fail(planner->query, FAY_E_USAGE, planner->span,
			       "a column cannot be a sequence");
		return false;
	}
}

static bool unique_names(struct fay_planner *planner)
{
	const struct fay_plan *plan = planner->plan;
	for (uint32_t i = 0; i < plan->column_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(plan->columns[i].name, plan->columns[j].name) == 0)
				return fay_query_fail(planner->query, FAY_E_USAGE, planner->span,
						      "there are two columns `%s`, of which one is "
						      "of the key; call the other something else",
						      plan->columns[i].name) != NULL;
	return true;
}

static const struct fay_expr *inner(const struct fay_expr *expr)
{
	while (expr->op == EXPR_KEY)
		expr = expr->a;
	return expr;
}

/* `time < CONSTANT` in any of its four spellings bounds the query. */
static uint64_t deadline_of(const struct fay_expr *filter)
{
	const struct fay_expr *time = filter->a, *limit = filter->b;
	bool below = filter->op == EXPR_LT || filter->op == EXPR_LE;
	bool inclusive = filter->op == EXPR_LE || filter->op == EXPR_GE;
	if (filter->op == EXPR_GT || filter->op == EXPR_GE) {
		time = filter->b;
		limit = filter->a;
		below = true;
	}
	if (!below || inner(time)->op != EXPR_FIELD || time->type != TYPE_TIME ||
	    !fay_expr_is_constant(limit))
		return 0;
	uint64_t end = (uint64_t)limit->value;
	if (inclusive && end != UINT64_MAX)
		end++;
	return end ? end : 1;
}

uint64_t fay_planner_deadline(const struct fay_plan_private *p)
{
	uint64_t deadline = 0;
	for (const struct fay_filter *filter = p->checked.filters; filter; filter = filter->next) {
		uint64_t end = deadline_of(filter->expr);
		if (end && (!deadline || end < deadline))
			deadline = end;
	}
	return deadline;
}

/* Streams of which only a part is shown: which part, if nothing else is done with the rows. */
static void find_window(struct fay_plan *plan, const struct fay_root_op *op)
{
	plan->row_limit = UINT64_MAX;
	for (; op; op = op->next) {
		if (op->kind == ROOT_TAKE && op->count < plan->row_limit) {
			plan->row_limit = op->count;
		} else if (op->kind == ROOT_SKIP) {
			if (__builtin_add_overflow(plan->first_row, op->count, &plan->first_row))
				plan->first_row = UINT64_MAX;
			if (plan->row_limit != UINT64_MAX)
				plan->row_limit -=
					op->count < plan->row_limit ? op->count : plan->row_limit;
		} else if (op->kind != ROOT_TAKE) {
			plan->collects = true;
		}
	}
}

/* What is left to the root, once the last stage's rows are laid out. */
static void plan_root(struct fay_plan *plan, const struct fay_plan_private *first)
{
	const struct fay_plan_private *last = fay_plan_last(plan);
	for (uint32_t i = 0; i < plan->column_count; i++)
		if (plan->columns[i].source == FAY_PLAN_COMPUTED)
			plan->columns[i].offset =
				last->row_size + plan->columns[i].index * FAY_RESULT_COMPUTED_SIZE;
	for (const struct fay_root_op *op = last->root; op; op = op->next) {
		plan->ordered |= op->kind == ROOT_ORDER;
		if (op->kind == ROOT_TAKE && (!plan->takes || op->count < plan->takes))
			plan->takes = op->count;
	}
	plan->grows = last == first;
	plan->regroups = last != first || first->buckets;
	if (plan->streams)
		find_window(plan, first->root);
	plan->finishes = last->computed_count || plan->regroups ||
			 (plan->streams ? plan->collects : first->root != NULL);
}

void fay_planner_fill_spec(struct fay_planner *planner)
{
	static const char *const symbols[] = { FAY_PROBE_SYMBOL, FAY_FAILURE_SYMBOL };
	struct fay_plan *plan = planner->plan;
	struct fay_plan_private *p = planner->private_plan;
	fay_planner_fill_stage(planner, symbols);
	p->image_states[0] = p->state;
	plan->spec = (struct fay_image_spec){
		/* never empty: `local` has to point to something */
		.local_size = p->state.size ? p->state.size : 8,
		.probes = p->probes,
		.probe_count = p->probe_count,
		.states = p->image_states,
		.state_count = 1,
		.columns = p->spec_columns,
		.column_count = p->keys + p->values,
	};
	fay_planner_stacks(planner);
	if (p->checked.calls)
		plan->spec.global_size =
			fay_plan_calls_offset(p) + (uint32_t)sizeof(struct fay_compute_calls);
}

/* Stages for the groupings of groups, behind the first one. */
static bool make_stages(struct fay_planner *planner)
{
	struct fay_plan_private *p = planner->private_plan;
	for (const struct fay_regroup *regroup = p->checked.regroups; regroup;
	     regroup = regroup->next) {
		struct fay_plan_private *next = fay_query_alloc(planner->query, sizeof(*next));
		if (!next)
			return false;
		next->query = p->query;
		next->kind = FAY_STATE_TABLE;
		next->number = p->number + 1;
		next->grouping = regroup->keys;
		next->root = regroup->root;
		next->checked.event_name = p->checked.event_name;
		next->checked.window = p->checked.window;
		p->next = next;
		p = next;
	}
	return true;
}

/* The keys that the query names come first. */
static bool add_keys(struct fay_planner *planner)
{
	for (const struct fay_key *key = planner->private_plan->grouping; key; key = key->next)
		if (fay_planner_key(planner, key->expr, key->name) < 0)
			return false;
	return true;
}

static bool add_result(struct fay_planner *planner)
{
	const struct fay_checked *checked = planner->checked;
	const struct fay_value_node *result = checked->result;
	bool scalar = result->kind == VALUE_SCALAR;
	const struct fay_value_node *row = scalar ? result : result->element;
	const char *name = scalar ? checked->result_name : result->name ? result->name : "";
	if (checked->window.step && !fay_planner_output(planner, checked->window.shown, "window"))
		return false;
	if (row->kind == VALUE_SCALAR && row->expr->op == EXPR_AGGREGATE)
		name = row->expr->aggregate->text;
	if (row->kind == VALUE_SCALAR && row->expr->op == EXPR_AVERAGE)
		name = row->expr->a->aggregate->text;
	return add_outputs(planner, row, name) && unique_names(planner);
}

/* What the stage behind computes with, of the rows of this one. */
static bool need_for_next(struct fay_planner *planner)
{
	const struct fay_plan_private *next = planner->private_plan->next;
	for (uint32_t i = 0; i < next->keys + next->values; i++) {
		const struct fay_expr *expr = next->columns[i].expr;
		const struct fay_aggregate *aggregate = i < next->keys ? NULL : expr->aggregate;
		if (!aggregate && !fay_planner_need(planner, expr))
			return false;
		const struct fay_expr *parts[] = { aggregate ? aggregate->operand : NULL,
						   aggregate ? aggregate->condition : NULL,
						   aggregate ? aggregate->when : NULL };
		for (unsigned part = 0; part < 3; part++)
			if (parts[part] && !fay_planner_need(planner, parts[part]))
				return false;
	}
	return true;
}

/* From the last stage, whose rows are the result, to the one in the probe. The stages are few. */
static bool lay_out_stages(const struct fay_planner *planner, struct fay_plan_private *p)
{
	struct fay_planner stage = *planner;
	stage.private_plan = p;
	if (p->next && !lay_out_stages(planner, p->next))
		return false;
	if (!add_keys(&stage) || (p->next ? !need_for_next(&stage) : !add_result(&stage)) ||
	    !need_for_root(&stage) || !fay_planner_lay_out(&stage))
		return false;
	if (p->number)
		fay_planner_fill_state(p);
	else
		fay_planner_fill_spec(&stage);
	return true;
}

/* What is known of the plan before its stages are. */
static void describe_source(struct fay_planner *planner)
{
	struct fay_plan *plan = planner->plan;
	struct fay_plan_private *p = planner->private_plan;
	plan->text = planner->query->text;
	plan->pattern = p->checked.pattern;
	plan->domain = p->checked.domain;
	plan->saved = planner->query->saved;
	plan->source_count = 1;
	for (unsigned s = 1; p->checked.join && s < p->checked.join->source_count; s++)
		plan->saved_joined[s - 1] = p->checked.join->sources[s + 1].saved;
	fay_plan_find_saved(p, plan->saved);
	plan->kernel = fay_kernel_kind_of(p->checked.kind);
	plan->kernel_sides = plan->domain == DOMAIN_KERNEL && !p->checked.join;
	plan->only_bpf = plan->domain == DOMAIN_KERNEL && p->checked.exprs.stack_frames;
}

static bool make_plan(struct fay_planner *planner)
{
	struct fay_plan *plan = planner->plan;
	struct fay_plan_private *p = planner->private_plan;
	const struct fay_value_node *result = p->checked.result;
	describe_source(planner);
	plan->columns = p->plan_columns;
	bool scalar = result->kind == VALUE_SCALAR;
	const struct fay_window *window = &p->checked.window;
	plan->window_events = window->events;
	plan->window_width = window->width;
	plan->window_step = window->events ? 0 : window->step;
	plan->scalar = scalar && !window->step;
	plan->streams = !scalar && !result->grouped;
	p->kind = p->checked.keys && !plan->streams ? FAY_STATE_TABLE
		  : plan->scalar                    ? FAY_STATE_CELL
		  : plan->streams                   ? FAY_STATE_STREAM
						    : FAY_STATE_TABLE;
	fay_rewrite_filters(&p->checked.filters);
	fay_rewrite_filters(&p->checked.window.before);
	p->grouping = p->checked.keys;
	p->root = p->checked.root;
	if (!make_stages(planner) || !lay_out_stages(planner, p) || !fay_planner_buckets(planner))
		return false;
	plan->deadline = fay_planner_deadline(p);
	for (struct fay_planner stage = *planner; stage.private_plan;
	     stage.private_plan = stage.private_plan->next)
		if (!fay_planner_prepare_rows(&stage))
			return false;
	plan_root(plan, p);
	if (!(p->checked.join ? fay_planner_join(planner)
			      : !window->events || fay_planner_events(planner)) ||
	    !fay_planner_texts(planner))
		return false;
	return fay_planner_when_full(planner);
}

void fay_plan_schema(const struct fay_plan *plan, struct fay_schema *schema)
{
	struct fay_plan_private *p = plan->private_plan;
	fay_stage_schema(p->buckets ? p->buckets->source : p, schema);
}

void fay_plan_result_schema(const struct fay_plan *plan, struct fay_schema *schema)
{
	fay_stage_schema(fay_plan_last(plan), schema);
}

const char *fay_plan_kernel_name(const struct fay_plan *plan, uint64_t hash)
{
	for (unsigned side = 0; side < plan->source_count; side++) {
		const struct fay_kernel_source *kernel = fay_plan_stage(plan, side)->checked.kernel;
		for (uint32_t i = 0; kernel && i < kernel->count; i++)
			if (fay_name_hash(kernel->points[i].name) == hash)
				return kernel->points[i].name;
	}
	return NULL;
}

int fay_query_plan_with(const char *text, const struct fay_query_options *options,
			struct fay_plan **plan_out, struct fay_error *error)
{
	struct fay_error local;
	if (!error)
		error = &local;
	struct fay_query *query = fay_query_create(text, options->now, error);
	if (!query)
		return (int)error->code;
	query->options = options;
	struct fay_plan *plan = fay_query_alloc(query, sizeof(*plan));
	struct fay_plan_private *p = plan ? fay_query_alloc(query, sizeof(*p)) : NULL;
	const struct fay_node *root = p ? fay_query_parse(query) : NULL;
	if (root) {
		p->query = query;
		p->checked.exprs.query = query;
		p->checked.whole_events = options->whole_events;
		plan->private_plan = p;
		struct fay_planner planner = { plan,  p,         &p->checked, &p->checked.exprs,
					       query, root->span };
		if (fay_query_check(&p->checked, root) && fay_check_inlined(&p->checked) &&
		    fay_check_calls(&p->checked) && make_plan(&planner)) {
			query->options = NULL; /* the caller's */
			plan->typed = query->typed;
			plan->inlined = p->checked.inlined != NULL;
			plan->keeps_calls = p->checked.calls != NULL;
			plan->extended = query->extension_count;
			plan->unfuelled |= plan->extended;
			plan->process = p->checked.process;
			plan->machine = p->checked.machine;
			plan->text_key = options->text_key;
			*plan_out = plan;
			return FAY_OK;
		}
	}
	fay_query_destroy(query);
	return (int)error->code;
}

int fay_query_plan(const char *text, uint64_t now, struct fay_plan **plan, struct fay_error *error)
{
	return fay_query_plan_with(text, &(struct fay_query_options){ .now = now }, plan, error);
}

enum fay_kernel_kind fay_plan_kernel_kind(const struct fay_plan *plan, unsigned side)
{
	return fay_kernel_kind_of(fay_plan_stage(plan, side)->checked.kind);
}

void fay_plan_destroy(struct fay_plan *plan)
{
	if (plan)
		fay_query_destroy(fay_plan_private(plan)->query);
}
