/* SPDX-License-Identifier: MIT */
/* Between the files that make expressions. */
#ifndef FAY_QUERY_EXPR_EXPR_PRIVATE_H
#define FAY_QUERY_EXPR_EXPR_PRIVATE_H

#include "expr.h"

/* The one node equal to *wanted. */
const struct fay_expr *fay_expr_intern(struct fay_exprs *exprs, const struct fay_expr *wanted);
/* An equal expression that is simpler than `a op b` (b NULL: unary), or NULL: no rule applies. */
const struct fay_expr *fay_rewrite_operation(struct fay_exprs *exprs, enum fay_expr_op op,
					     enum fay_type type, const struct fay_expr *a,
					     const struct fay_expr *b);

#endif
