/* SPDX-License-Identifier: MIT */
/* Which values are spans of time: they are shown with a unit. */
#include <string.h>

#include "planner_private.h"

#include "query/sources/sources.h"

#define SPAN_DEPTH 12u /* of an expression that is looked at for its unit */

/* Whether a value is a span of time in nanoseconds, as far as its expression shows. */
static bool is_span(const struct fay_plan_private *p, const struct fay_expr *e, unsigned depth)
{
	if (!depth--)
		return false;
	switch (e->op) {
	case EXPR_FIELD: return !strcmp(fay_fields[e->value].name, "Duration");
	case EXPR_AGGREGATE:
		return e->aggregate->operand && e->aggregate->merge != FAY_MERGE_DISTINCT &&
		       is_span(p, e->aggregate->operand, depth);
	case EXPR_KEY:
	case EXPR_SIDE:
	case EXPR_NEG:
	case EXPR_QUANTILE:
	case EXPR_AVERAGE: return is_span(p, e->a, depth);
	case EXPR_SUB:
		return (e->a->type == TYPE_TIME && e->b->type == TYPE_TIME) ||
		       is_span(p, e->a, depth);
	case EXPR_ADD: return is_span(p, e->a, depth) || is_span(p, e->b, depth);
	case EXPR_COND: return is_span(p, e->b, depth) && is_span(p, e->c, depth);
	/* a saved event's: what has the name of an event's field is it */
	case EXPR_ARG:
		return p->checked.domain == DOMAIN_FILE && e->name && !strcmp(e->name, "Duration");
	default: return false;
	}
}

bool fay_planner_is_span(const struct fay_planner *planner, const struct fay_expr *expr)
{
	return expr->type != TYPE_TIME && is_span(planner->private_plan, expr, SPAN_DEPTH);
}
