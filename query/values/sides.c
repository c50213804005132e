/* SPDX-License-Identifier: MIT */
/* Which source of a join `checked` speaks of, and values of one side as the pairs see them. */
#include "values.h"

typedef struct fay_value_node value;

static void store(struct fay_checked *checked)
{
	checked->join->sources[checked->join->active] = (struct fay_check_source){
		.pattern = checked->pattern,
		.event_name = checked->event_name,
		.kind = checked->kind,
		.domain = checked->domain,
		.span = checked->source,
		.kernel = checked->kernel,
		.function = checked->function,
		.uses_failed = checked->uses_failed,
		.uses_end = checked->uses_end,
		.uses_duration = checked->uses_duration,
		.saved_kernel = checked->saved_kernel,
		.filters = checked->filters,
		.saved = checked->exprs.query->saved,
	};
}

static void load(struct fay_checked *checked)
{
	const struct fay_check_source *source = &checked->join->sources[checked->join->active];
	checked->pattern = source->pattern;
	checked->event_name = source->event_name;
	checked->kind = source->kind;
	checked->domain = source->domain;
	checked->source = source->span;
	checked->kernel = source->kernel;
	checked->function = source->function;
	checked->uses_failed = source->uses_failed;
	checked->uses_end = source->uses_end;
	checked->uses_duration = source->uses_duration;
	checked->saved_kernel = source->saved_kernel;
	checked->filters = source->filters;
	checked->filters_tail = &checked->filters;
	while (*checked->filters_tail)
		checked->filters_tail = &(*checked->filters_tail)->next;
	checked->exprs.query->saved = source->saved;
}

void fay_check_change_source(struct fay_checked *checked, unsigned source)
{
	store(checked);
	checked->join->active = source;
	load(checked);
}

unsigned fay_check_enter_side(struct fay_checked *checked, unsigned side)
{
	unsigned outside = checked->join ? checked->join->active : FAY_PAIRS;
	if (side)
		fay_check_change_source(checked, side);
	return outside;
}

value *fay_check_leave_side(struct fay_checked *checked, unsigned outside, value *v)
{
	unsigned side = checked->join ? checked->join->active : FAY_PAIRS;
	if (side == outside)
		return v;
	fay_check_change_source(checked, outside);
	return v ? fay_check_seen_from_pairs(checked, side, v) : NULL;
}

static const struct fay_expr *side_expr(struct fay_checked *checked, unsigned side,
					const struct fay_expr *expr)
{
	return fay_expr_side(&checked->exprs, side - FAY_LEFT,
			     checked->join->names[side - FAY_LEFT], expr);
}

/* Records are as deep as the text nests them. */
value *fay_check_seen_from_pairs(struct fay_checked *checked, unsigned side, value *of_side)
{
	value *seen = fay_check_value(checked, of_side->kind);
	if (!seen)
		return NULL;
	*seen = *of_side;
	seen->side = side;
	if (of_side->kind == VALUE_EVENT || of_side->kind == VALUE_OBJECT) {
		return seen;
	} else if (of_side->kind == VALUE_SCALAR) {
		seen->expr = side_expr(checked, side, of_side->expr);
		return seen->expr ? seen : NULL;
	} else if (of_side->kind == VALUE_RECORD) {
		struct fay_member **tail = &seen->members;
		for (const struct fay_member *m = of_side->members; m; m = m->next) {
			struct fay_member *copy =
				fay_query_alloc(checked->exprs.query, sizeof(*copy));
			if (!copy ||
			    !(copy->value = fay_check_seen_from_pairs(checked, side, m->value)))
				return NULL;
			copy->name = m->name;
			*tail = copy;
			tail = &copy->next;
		}
		*tail = NULL;
	}
	return seen;
}
