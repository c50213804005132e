/* SPDX-License-Identifier: MIT */
/*
 * Rewrite rules on expressions and conditions, each small, each with its own test
 * (tests/query/test_rewrite.c). Other rules of the optimiser are where their information is:
 * folding and common subexpressions in expr.c, push-down to a join's sides in expr.c and
 * check_join.c, what a probe computes and what is left to the root in check_root.c and plan.c,
 * columns that nothing needs in plan.c and plan_join.c. docs/faylinq.md lists them.
 */
#ifndef FAY_QUERY_REWRITE_H
#define FAY_QUERY_REWRITE_H

#include "check.h"

/* An equal expression that is simpler than `a op b` (b NULL: unary), or NULL: no rule applies. */
const struct fay_expr *fay_rewrite_operation(struct fay_exprs *exprs, enum fay_expr_op op,
					     enum fay_type type, const struct fay_expr *a,
					     const struct fay_expr *b);
/* Conditions that all must hold: those that say nothing more than others are taken out. */
void fay_rewrite_filters(struct fay_filter **filters);

#endif
