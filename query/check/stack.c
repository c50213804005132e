/* SPDX-License-Identifier: MIT */
/* `Stack(n)`, `UserStack` and `KernelStack` of an event. */
#include "check_private.h"

#include <string.h>

#include "fay/stacks.h"

bool fay_check_is_stack(const char *name)
{
	return strcmp(name, "Stack") == 0 || strcmp(name, "UserStack") == 0 ||
	       strcmp(name, "KernelStack") == 0;
}

/* Whether the events have such a stack. */
static bool has_stack(struct fay_checked *checked, struct fay_span span, const char *name,
		      bool of_kernel)
{
	struct fay_query *query = checked->exprs.query;
	if (checked->domain == DOMAIN_FILE)
		return fay_query_fail(
			       query, FAY_E_REFUSED, span,
			       "in a saved trace, a stack has the name that it was selected under: "
			       "`select new { e.time, e.UserStack }` is `e.UserStack` there") !=
		       NULL;
	if (of_kernel && checked->domain == DOMAIN_USER)
		return fay_query_fail(
			       query, FAY_E_USAGE, span,
			       "`%s` is for kernel events; here `UserStack` is the program's",
			       name) != NULL;
	return true;
}

static struct fay_value_node *stack_of(struct fay_checked *checked, struct fay_span span,
				       const char *name, uint32_t frames)
{
	bool of_kernel = strcmp(name, "KernelStack") == 0 ||
			 (strcmp(name, "Stack") == 0 && checked->domain == DOMAIN_KERNEL);
	if (!has_stack(checked, span, name, of_kernel))
		return NULL;
	return fay_check_scalar(checked, fay_expr_stack(&checked->exprs, frames, of_kernel));
}

struct fay_value_node *fay_check_stack(struct fay_checked *checked, const struct fay_node *node)
{
	if (strcmp(node->name, "Stack") == 0)
		return fay_query_fail(
			checked->exprs.query, FAY_E_USAGE, node->name_span,
			"`Stack` needs a number: `Stack(8)` is the innermost 8 frames");
	return stack_of(checked, node->name_span, node->name, FAY_STACK_FRAMES);
}

struct fay_value_node *fay_check_stack_call(struct fay_checked *checked,
					    const struct fay_scope *scope,
					    const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const char *name = call->a->name;
	if (call->item_count != 1)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`%s` takes one number, 1 to %u", name, FAY_STACK_FRAMES_MAX);
	const struct fay_node *argument = call->items->value;
	const struct fay_expr *frames =
		fay_check_typed(checked, scope, argument, TYPE_INT, "the number of frames");
	if (!frames)
		return NULL;
	if (!fay_expr_is_constant(frames) || frames->value < 1 ||
	    frames->value > FAY_STACK_FRAMES_MAX)
		return fay_query_fail(query, FAY_E_USAGE, argument->span,
				      "the number of frames is a constant from 1 to %u",
				      FAY_STACK_FRAMES_MAX);
	return stack_of(checked, call->span, name, (uint32_t)frames->value);
}
