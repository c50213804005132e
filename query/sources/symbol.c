/* SPDX-License-Identifier: MIT */
/* `Symbol` of an address. */
#include <string.h>

#include "sources.h"

bool fay_check_is_symbol(const struct fay_node *node, const struct fay_value_node *object)
{
	return !strcmp(node->name, "Symbol") && object->kind == VALUE_SCALAR &&
	       object->expr->type == TYPE_INT && !fay_expr_is_constant(object->expr);
}

struct fay_value_node *fay_check_symbol(struct fay_checked *checked, const struct fay_node *node,
					const struct fay_expr *address)
{
	struct fay_query *query = checked->exprs.query;
	if (checked->domain != DOMAIN_USER)
		return fay_query_fail(
			query, FAY_E_REFUSED, node->name_span,
			"`Symbol` is of addresses of programs, in functions, returns, "
			"lines and USDT probes of theirs");
	if (fay_check_is_grouped(address))
		return fay_query_fail(query, FAY_E_USAGE, node->name_span,
				      "`Symbol` is written before the grouping");
	return fay_check_scalar(checked, fay_expr_symbol(&checked->exprs, address));
}
