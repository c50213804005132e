/* SPDX-License-Identifier: MIT */
/* `.WhenFull(Block)`, `.WhenFull(Drop)`, `.WhenFull(Overwrite)`: what becomes of an event whose row
 * finds no room in its thread's ring. */
#include "check_private.h"

#include <string.h>

static const char *const names[] = {
	[FAY_FULL_BLOCK] = "Block", [FAY_FULL_DROP] = "Drop", [FAY_FULL_OVERWRITE] = "Overwrite"
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

struct fay_value_node *fay_check_when_full(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *call,
					   struct fay_value_node *object)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *argument = call->items->value;
	unsigned found = 0;
	(void)scope;
	while (found < NAME_COUNT &&
	       (argument->kind != NODE_NAME || strcmp(argument->name, names[found]) != 0))
		found++;
	if (found == NAME_COUNT)
		return fay_query_fail(
			query, FAY_E_USAGE, argument->span,
			"`WhenFull` takes one of `Block`, `Drop`, `Overwrite`%s",
			argument->kind == NODE_NAME
				? fay_query_did_you_mean(query, argument->name, names, NAME_COUNT)
				: "");
	if (object->grouped)
		return fay_query_fail(query, FAY_E_USAGE, call->a->name_span,
				      "`WhenFull` is about the events of a source: put it after "
				      "cluster.Function(...)");
	if (checked->when_full_at.end && checked->when_full != (enum fay_when_full)found)
		return fay_query_fail(
			query, FAY_E_USAGE, call->a->name_span,
			"the query says `WhenFull(%s)` already, and it holds for all sources",
			names[checked->when_full]);
	checked->when_full = (enum fay_when_full)found;
	checked->when_full_at = call->a->name_span;
	return object;
}
