/* SPDX-License-Identifier: MIT */
/* Which of a plan's columns hold addresses of code: on a cluster these are told by name, since they
 * differ from machine to machine. */
#include "plan.h"

_Static_assert(FAY_PLAN_CODES_MAX == FAY_QUERY_MAX_COLUMNS, "a column each");

static bool is_code(const struct fay_expr *expr)
{
	return expr && (expr->type == TYPE_ADDRESS || expr->type == TYPE_SYMBOL ||
			expr->type == TYPE_STACK);
}

/* The expression in the probe that a key stands for. */
static const struct fay_expr *in_probe(const struct fay_expr *expr)
{
	while (expr->op == EXPR_KEY)
		expr = expr->a;
	return expr;
}

uint32_t fay_plan_codes(const struct fay_plan *plan, struct fay_plan_code codes[FAY_PLAN_CODES_MAX])
{
	const struct fay_plan_private *p = fay_plan_stage(plan, 0);
	uint32_t count = 0;
	for (uint32_t i = 0; i < p->keys; i++) {
		const struct fay_expr *expr = in_probe(p->columns[i].expr);
		if (is_code(expr))
			codes[count++] =
				(struct fay_plan_code){ .column = i,
							.exact = expr->type != TYPE_ADDRESS,
							.kernel = expr->type == TYPE_STACK &&
								  expr->length };
	}
	return count;
}

bool fay_plan_computes_codes(const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, 0);
	for (uint32_t i = p->keys; i < p->keys + p->values; i++)
		if (is_code(p->columns[i].expr->aggregate->operand))
			return true;
	return false;
}
