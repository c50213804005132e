/* SPDX-License-Identifier: MIT */
/* Fields and methods of an event: which of its source there are, and what they mean. */
#include "check_private.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

bool fay_check_is_event_member(const char *name)
{
	for (size_t i = 0; i < fay_field_count; i++)
		if (fay_fields[i].sources && strcmp(fay_fields[i].name, name) == 0)
			return true;
	return strcmp(name, "Arg") == 0 || strcmp(name, "Caller") == 0 ||
	       strcmp(name, "Known") == 0 || fay_check_is_stack(name);
}

/* A name that events of the other sources have. */
static void *fail_elsewhere(struct fay_checked *checked, const struct fay_node *node,
			    bool of_return)
{
	if (of_return)
		return fay_query_fail(
			checked->exprs.query, FAY_E_USAGE, node->name_span,
			"`%s` is known when a call ends: use cluster.Return(...) as the source",
			node->name);
	return fay_query_fail(
		checked->exprs.query, FAY_E_USAGE, node->name_span,
		"`%s` is known when a call begins: use cluster.Function(...) as the source",
		node->name);
}

struct fay_value_node *fay_check_event_member(struct fay_checked *checked,
					      const struct fay_node *node)
{
	struct fay_query *query = checked->exprs.query;
	const char *candidates[64];
	size_t count = 0;
	for (size_t i = 0; i < fay_field_count; i++) {
		const struct fay_field *field = &fay_fields[i];
		bool here = field->sources & checked->kind;
		if (here)
			candidates[count++] = field->name;
		if (strcmp(field->name, node->name) != 0 || !field->sources)
			continue;
		if (!here && fay_source_is_bpf(checked->kind))
			return fay_query_fail(query, FAY_E_USAGE, node->name_span,
					      "events of cluster.%s have no `%s`",
					      checked->kind == SOURCE_SYSCALL ? "Syscall"
					      : checked->kind == SOURCE_TIMER ? "Timer"
									      : "Tracepoint",
					      node->name);
		if (!here && fay_field_is_inlined(field))
			return fay_query_fail(query, FAY_E_USAGE, node->name_span,
					      "`Inlined` is of cluster.Function(...): a copy of an "
					      "inlined function has no end that could be traced");
		if (!here)
			return fail_elsewhere(checked, node, true);
		if (checked->domain == DOMAIN_FILE &&
		    !fay_check_saved(checked, node->name_span, field->name))
			return NULL;
		if (fay_field_is_inlined(field) && checked->domain == DOMAIN_KERNEL)
			return fay_query_fail(query, FAY_E_REFUSED, node->name_span,
					      "copies of inlined functions are known of programs, "
					      "not of the kernel");
		checked->uses_failed |= fay_field_is_failed(field);
		checked->uses_inlined |=
			fay_field_is_inlined(field) && checked->domain == DOMAIN_USER;
		checked->uses_end |= field->sources == (SOURCE_RETURN | SOURCE_SYSCALL);
		checked->uses_duration |= field->offset == offsetof(struct fay_event, duration);
		const struct fay_expr *value = fay_expr_field(&checked->exprs, field);
		bool result = checked->kind == SOURCE_RETURN && checked->domain == DOMAIN_USER &&
			      field->offset == offsetof(struct fay_event, retval);
		return value && result ? fay_check_function_result(checked, node, value)
				       : fay_check_scalar(checked, value);
	}
	if (checked->kind == SOURCE_LINE && strcmp(node->name, "line") == 0)
		return fay_check_scalar(checked,
					fay_expr_int(&checked->exprs, TYPE_INT,
						     fay_check_line_number(checked->pattern)));
	if (checked->kind == SOURCE_LINE)
		candidates[count++] = "line";
	if (fay_check_is_saved(checked, node->name))
		return fay_check_saved_member(checked, node);
	if (checked->kind == SOURCE_SYSCALL && strcmp(node->name, "Error") == 0)
		return fay_check_syscall_error(checked, node);
	if (strcmp(node->name, "Caller") == 0)
		return fay_check_caller(checked, node);
	if (fay_check_is_stack(node->name))
		return fay_check_stack(checked, node);
	if (strcmp(node->name, "Arg") == 0)
		return checked->kind != SOURCE_RETURN || fay_check_keeps_arguments(checked)
			       ? fay_query_fail(
					 query, FAY_E_USAGE, node->name_span,
					 "`Arg` needs a number: `Arg(0)` is the first argument")
			       : fail_elsewhere(checked, node, false);
	if (checked->kind != SOURCE_RETURN || fay_check_keeps_arguments(checked))
		candidates[count++] = "Arg";
	if (fay_check_has_caller(checked))
		candidates[count++] = "Caller";
	if (checked->kind == SOURCE_SYSCALL)
		candidates[count++] = "Error";
	candidates[count++] = "Stack";
	candidates[count++] = "UserStack";
	if (checked->domain == DOMAIN_KERNEL)
		candidates[count++] = "KernelStack";
	if (checked->domain == DOMAIN_FILE)
		return fay_check_saved_member(checked, node);
	struct fay_value_node *argument = checked->kernel
						  ? fay_check_kernel_argument(checked, node)
						  : fay_check_function_argument(checked, node);
	if (argument || query->failed)
		return argument;
	for (uint32_t i = 0; checked->kernel && i < checked->kernel->argument_count; i++)
		candidates[count++] = checked->kernel->arguments[i].name;
	count +=
		fay_check_function_names(checked, candidates + count, COUNT_OF(candidates) - count);
	const char *hint = fay_query_did_you_mean(query, node->name, candidates, count),
		   *list = fay_check_argument_list(checked);
	if (!*list && !*hint)
		list = checked->kind == SOURCE_SYSCALL
			       ? "no system call that matches has such an argument; by number they "
				 "are known, too, as in `Arg(0)`"
			       : fay_check_function_reason(checked);
	const char *event = node->a->kind == NODE_NAME ? node->a->name : "";
	return fay_query_fail(query, FAY_E_USAGE, node->name_span,
			      "unknown field `%s` of event%s%s%s%s%s%s", node->name,
			      *event ? " `" : "", event, *event ? "`" : "", hint,
			      !*list  ? ""
			      : *hint ? " "
				      : "; ",
			      list);
}

static struct fay_value_node *check_arg(struct fay_checked *checked, const struct fay_scope *scope,
					const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	if (checked->kind == SOURCE_RETURN && !fay_check_keeps_arguments(checked))
		return fail_elsewhere(checked, call->a, false);
	checked->return_arguments |= checked->kind == SOURCE_RETURN;
	if (checked->kind == SOURCE_LINE)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "a line has no arguments: variables have their names there");
	if (checked->kind == SOURCE_TIMER)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "events of cluster.Timer have no arguments");
	if (call->item_count != 1)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`Arg` takes one number, 0 to 5");
	const struct fay_node *index = call->items->value;
	const struct fay_expr *expr =
		fay_check_typed(checked, scope, index, TYPE_INT, "an argument's number");
	if (!expr)
		return NULL;
	if (!fay_expr_is_constant(expr))
		return fay_query_fail(query, FAY_E_USAGE, index->span,
				      "an argument's number must be a constant");
	if (checked->kind == SOURCE_TRACEPOINT && checked->domain != DOMAIN_FILE)
		return fay_check_kernel_arg(
			checked, index,
			expr->value < 0 || expr->value > 11 ? 12 : (uint32_t)expr->value);
	if (expr->value < 0 || expr->value > 5)
		return fay_query_fail(query, FAY_E_USAGE, index->span,
				      "there is no argument %lld: `Arg` takes 0 to 5, the six "
				      "arguments in registers",
				      (long long)expr->value);
	if (checked->domain == DOMAIN_FILE &&
	    !fay_check_saved(checked, call->span,
			     fay_query_format(query, "Arg(%lld)", (long long)expr->value)))
		return NULL;
	return fay_check_scalar(checked, fay_expr_arg(&checked->exprs, (unsigned)expr->value));
}

/* event.name(arguments) */
struct fay_value_node *fay_check_event_call(struct fay_checked *checked,
					    const struct fay_scope *scope,
					    const struct fay_node *call)
{
	if (strcmp(call->a->name, "Arg") == 0)
		return check_arg(checked, scope, call);
	if (strcmp(call->a->name, "Known") == 0)
		return fay_check_known(checked, call);
	if (fay_check_is_stack(call->a->name))
		return fay_check_stack_call(checked, scope, call);
	if (fay_check_is_event_member(call->a->name))
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, call->span,
				      "`%s` is a field, not a method", call->a->name);
	return fay_check_event_member(checked, call->a);
}
