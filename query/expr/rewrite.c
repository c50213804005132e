/* SPDX-License-Identifier: MIT */
/*
 * Rewrite rules on expressions and conditions, each small, each with its own test
 * (tests/query/test_rewrite.c). Other rules of the optimiser are where their information is:
 * folding and common subexpressions in query/expr/expr.c, push-down to a join's sides there and in
 * query/check/join.c, what a probe computes and what is left to the root in query/check/root.c and
 * query/plan/plan.c, columns that nothing needs in query/plan/. docs/faylinq.md lists them.
 */
#include "expr_private.h"

/* --- operations --- */

static bool is_int(const struct fay_expr *expr, int64_t value)
{
	return expr && fay_expr_is_constant(expr) && expr->type == TYPE_INT && expr->value == value;
}

/* x + 0, x * 1, x & -1 ... are x. */
static const struct fay_expr *neutral(enum fay_expr_op op, const struct fay_expr *a,
				      const struct fay_expr *b)
{
	switch (op) {
	case EXPR_ADD:
	case EXPR_BIT_OR:
	case EXPR_BIT_XOR: return is_int(b, 0) ? a : is_int(a, 0) ? b : NULL;
	case EXPR_SUB:
	case EXPR_SHL:
	case EXPR_SHR:
	case EXPR_SHR_LOGICAL: return is_int(b, 0) ? a : NULL;
	case EXPR_MUL: return is_int(b, 1) ? a : is_int(a, 1) ? b : NULL;
	case EXPR_DIV: return is_int(b, 1) ? a : NULL;
	case EXPR_BIT_AND: return is_int(b, -1) ? a : is_int(a, -1) ? b : NULL;
	default: return NULL;
	}
}

/* x * 0, x & 0, x - x, x ^ x, x % 1 are 0. */
static bool is_zero(enum fay_expr_op op, const struct fay_expr *a, const struct fay_expr *b)
{
	switch (op) {
	case EXPR_MUL:
	case EXPR_BIT_AND: return is_int(a, 0) || is_int(b, 0);
	case EXPR_SUB:
	case EXPR_BIT_XOR: return a == b;
	case EXPR_MOD: return is_int(b, 1) || is_int(b, -1);
	default: return false;
	}
}

/* x & x, x && x ... are x. */
static bool is_idempotent(enum fay_expr_op op)
{
	return op == EXPR_BIT_AND || op == EXPR_BIT_OR || op == EXPR_AND || op == EXPR_OR;
}

/* What x compared with itself is: 0, 1, or -1 for no comparison. */
static int of_itself(enum fay_expr_op op)
{
	switch (op) {
	case EXPR_EQ:
	case EXPR_LE:
	case EXPR_GE: return 1;
	case EXPR_NE:
	case EXPR_LT:
	case EXPR_GT: return 0;
	default: return -1;
	}
}

const struct fay_expr *fay_rewrite_operation(struct fay_exprs *exprs, enum fay_expr_op op,
					     enum fay_type type, const struct fay_expr *a,
					     const struct fay_expr *b)
{
	if (!b) /* !!x, - -x, ~~x */
		return (op == EXPR_NOT || op == EXPR_NEG || op == EXPR_BIT_NOT) && a->op == op
			       ? a->a
			       : NULL;
	const struct fay_expr *same = neutral(op, a, b);
	if (same && same->type == type)
		return same;
	/* What an aggregate makes of nothing is no value, whatever is done with it: such operands
	 * stay. */
	if (a->has_aggregate || b->has_aggregate || a->type == TYPE_REAL || b->type == TYPE_REAL)
		return NULL;
	if (type == TYPE_INT && is_zero(op, a, b))
		return fay_expr_int(exprs, TYPE_INT, 0);
	if (a != b)
		return NULL;
	if (is_idempotent(op))
		return a;
	return of_itself(op) < 0 ? NULL : fay_expr_int(exprs, TYPE_BOOL, of_itself(op));
}

/* --- conditions --- */

static bool is_constant(const struct fay_filter *filter, bool value)
{
	return fay_expr_is_constant(filter->expr) && (filter->expr->value != 0) == value;
}

/* x op CONSTANT with an order: the kind of bound, 1 from below, -1 from above; 0: it is something
 * else. */
static int bound_of(const struct fay_expr *expr)
{
	bool ordered = expr->op >= EXPR_LT && expr->op <= EXPR_GE;
	if (!ordered || !fay_expr_is_constant(expr->b) ||
	    (expr->b->type != TYPE_INT && expr->b->type != TYPE_TIME))
		return 0;
	return expr->op == EXPR_GT || expr->op == EXPR_GE ? 1 : -1;
}

/* Whether `strong` holding means that `weak` holds: the same, or bounds of the same expression. */
static bool implies(const struct fay_expr *strong, const struct fay_expr *weak)
{
	if (strong == weak)
		return true;
	int bound = bound_of(weak);
	if (!bound || strong->a != weak->a)
		return false;
	enum fay_type type = weak->b->type;
	if (strong->op == EXPR_EQ && fay_expr_is_constant(strong->b) && strong->b->type == type)
		return fay_expr_fold_ints(weak->op, type, strong->b->value, weak->b->value);
	if (bound_of(strong) != bound)
		return false;
	if (strong->b->value == weak->b->value) /* x > 5 says more than x >= 5 */
		return strong->op == EXPR_GT || strong->op == EXPR_LT;
	return fay_expr_fold_ints(bound > 0 ? EXPR_GT : EXPR_LT, type, strong->b->value,
				  weak->b->value);
}

/* Whether another condition makes this one superfluous. It is then taken out at once, so of two
 * equal ones one stays. */
static bool is_implied(const struct fay_filter *filters, const struct fay_filter *filter)
{
	for (const struct fay_filter *other = filters; other; other = other->next)
		if (other != filter && implies(other->expr, filter->expr))
			return true;
	return false;
}

/* Conditions compared with each other are so many; the rest stays as it is. */
#define COMPARED_MAX 200u

void fay_rewrite_filters(struct fay_filter **filters)
{
	unsigned count = 0;
	for (struct fay_filter *filter = *filters; filter; filter = filter->next, count++)
		if (is_constant(filter, false)) { /* nothing passes */
			filter->next = NULL;
			*filters = filter;
			return;
		}
	for (struct fay_filter **at = filters; *at;) {
		if (is_constant(*at, true) || (count <= COMPARED_MAX && is_implied(*filters, *at)))
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
}
