/* SPDX-License-Identifier: MIT */
/* Making symbolic values, and what messages call them. */
#include "values.h"

struct fay_value_node *fay_check_value(struct fay_checked *checked, enum fay_value_kind kind)
{
	struct fay_value_node *value = fay_query_alloc(checked->exprs.query, sizeof(*value));
	if (value)
		value->kind = kind;
	return value;
}

struct fay_value_node *fay_check_scalar(struct fay_checked *checked, const struct fay_expr *expr)
{
	struct fay_value_node *value = expr ? fay_check_value(checked, VALUE_SCALAR) : NULL;
	if (value)
		value->expr = expr;
	return value;
}

const char *fay_check_describe(struct fay_checked *checked, const struct fay_value_node *value)
{
	static const char *const kinds[] = {
		[VALUE_EVENT] = "an event",
		[VALUE_RECORD] = "a record",
		[VALUE_GROUP] = "a group",
		[VALUE_SEQUENCE] = "a sequence",
		[VALUE_CLUSTER] = "the cluster",
		[VALUE_KERNEL] = "the kernel",
		[VALUE_OBJECT] = "a structure or an array",
	};
	if (value->kind != VALUE_SCALAR)
		return kinds[value->kind];
	const char *name = fay_type_name(value->expr->type);
	return fay_query_format(checked->exprs.query, "%s %s",
				value->expr->type == TYPE_INT ? "an" : "a", name);
}
