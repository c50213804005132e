/* SPDX-License-Identifier: MIT */
/* process("redis-server"), process(1234), machine("web1") instead of `cluster`: the query names the
 * process, the machine that it is about. */
#include <string.h>

#include "check_private.h"

#define HIGHEST_PID (1 << 22) /* the kernel's PID_MAX_LIMIT */

struct fay_value_node *fay_check_process(struct fay_checked *checked, const struct fay_scope *scope,
					 const struct fay_node *call, const char *machine)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	struct fay_value_node *argument = at ? fay_check_node(checked, scope, at) : NULL;
	const struct fay_expr *which =
		argument && argument->kind == VALUE_SCALAR && fay_expr_is_constant(argument->expr)
			? argument->expr
			: NULL;
	if (query->failed)
		return NULL;
	bool name = which && which->type == TYPE_STRING && which->length &&
		    strlen(which->string) == which->length;
	bool number =
		which && which->type == TYPE_INT && which->value > 0 && which->value <= HIGHEST_PID;
	if (!name && !number)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`process` takes a name or a number: "
				      "process(\"redis-server\"), process(1234)");
	struct fay_value_node *value = fay_check_value(checked, VALUE_CLUSTER);
	struct fay_query_process *process = value ? fay_query_alloc(query, sizeof(*process)) : NULL;
	if (!process)
		return NULL;
	*process = (struct fay_query_process){ .comm = name ? which->string : NULL,
					       .pid = number ? (int)which->value : 0 };
	value->process = process;
	value->machine = machine;
	return value;
}

struct fay_value_node *fay_check_machine(struct fay_checked *checked, const struct fay_node *call)
{
	const struct fay_node *name = call->item_count == 1 ? call->items->value : NULL;
	if (!name || name->kind != NODE_STRING || !name->length ||
	    name->length > FAY_QUERY_MAX_NAME || strlen(name->name) != name->length)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, call->span,
				      "`machine` takes a name, of at most %u bytes, or a glob: "
				      "machine(\"web1\"), machine(\"web*\")",
				      FAY_QUERY_MAX_NAME);
	struct fay_value_node *value = fay_check_value(checked, VALUE_CLUSTER);
	if (value)
		value->machine = name->name;
	return value;
}

static bool same_process(const struct fay_query_process *a, const struct fay_query_process *b)
{
	if (!a || !b)
		return a == b;
	return a->pid == b->pid && (a->comm ? b->comm && !strcmp(a->comm, b->comm) : !b->comm);
}

bool fay_check_one_origin(struct fay_checked *checked, const struct fay_node *call,
			  const struct fay_value_node *origin)
{
	const char *first = checked->machine, *machine = origin->machine;
	if (!checked->has_source) {
		checked->process = origin->process;
		checked->machine = machine;
	} else if (!same_process(checked->process, origin->process)) {
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, call->span,
				      "both sources of a query must be of the same process, or of "
				      "`cluster`") != NULL;
	} else if (first && machine ? strcmp(first, machine) != 0 : first != machine) {
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, call->span,
				      "both sources of a query must be of the same machine, or of "
				      "`cluster`") != NULL;
	}
	checked->has_source = true;
	return true;
}
