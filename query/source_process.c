/* SPDX-License-Identifier: MIT */
/* process("redis-server") and process(1234) instead of `cluster`: the query names the process that it is about. */
#include <string.h>

#include "check.h"

#define HIGHEST_PID (1 << 22) /* the kernel's PID_MAX_LIMIT */

struct fay_value_node *fay_check_process(struct fay_checked *checked, const struct fay_scope *scope, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	struct fay_value_node *argument = at ? fay_check_node(checked, scope, at) : NULL;
	const struct fay_expr *which = argument && argument->kind == VALUE_SCALAR && fay_expr_is_constant(argument->expr) ? argument->expr : NULL;
	if (query->failed)
		return NULL;
	bool name = which && which->type == TYPE_STRING && which->length && strlen(which->string) == which->length;
	bool number = which && which->type == TYPE_INT && which->value > 0 && which->value <= HIGHEST_PID;
	if (!name && !number)
		return fay_query_fail(query, FAY_E_USAGE, call->span, "`process` takes a name or a number: process(\"redis-server\"), process(1234)");
	struct fay_value_node *value = fay_check_value(checked, VALUE_CLUSTER);
	struct fay_query_process *process = value ? fay_query_alloc(query, sizeof(*process)) : NULL;
	if (!process)
		return NULL;
	*process = (struct fay_query_process){.comm = name ? which->string : NULL, .pid = number ? (int)which->value : 0};
	value->process = process;
	return value;
}

bool fay_check_one_process(struct fay_checked *checked, const struct fay_node *call, const struct fay_query_process *process)
{
	const struct fay_query_process *first = checked->process;
	bool same = !first || !process ? first == process : first->pid == process->pid && (first->comm ? process->comm && !strcmp(first->comm, process->comm) : !process->comm);
	if (!checked->has_source)
		checked->process = process;
	else if (!same)
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, call->span, "both sources of a query are of the same process, or of `cluster`") != NULL;
	checked->has_source = true;
	return true;
}
