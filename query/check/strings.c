/* SPDX-License-Identifier: MIT */
/* Methods of strings. */
#include <string.h>

#include "check_private.h"

static const struct {
	const char *name;
	enum fay_expr_op op;
} methods[] = { { "StartsWith", EXPR_STARTS_WITH },
		{ "EndsWith", EXPR_ENDS_WITH },
		{ "Contains", EXPR_CONTAINS } };
/* bytes that are looked for in a long string: its probe compares them at every place */
#define PART_MAX 64u
#define METHODS (sizeof(methods) / sizeof(methods[0]))

static void *unknown_method(struct fay_checked *checked, const struct fay_node *member)
{
	const char *names[METHODS + 1] = { [METHODS] = "Length" };
	struct fay_query *query = checked->exprs.query;
	for (size_t i = 0; i < METHODS; i++)
		names[i] = methods[i].name;
	return fay_query_fail(query, FAY_E_USAGE, member->name_span,
			      "a string has no method `%s`%s", member->name,
			      fay_query_did_you_mean(query, member->name, names, METHODS + 1));
}

struct fay_value_node *fay_check_string_method(struct fay_checked *checked,
					       const struct fay_scope *scope,
					       const struct fay_node *call,
					       const struct fay_expr *string)
{
	struct fay_query *query = checked->exprs.query;
	const char *name = call->a->name;
	size_t method = 0;
	while (method < METHODS && strcmp(methods[method].name, name))
		method++;
	if (strcmp(name, "Length") == 0)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`Length` is not a method: leave out the brackets");
	if (method == METHODS)
		return unknown_method(checked, call->a);
	if (string->type != TYPE_STRING)
		return fay_query_fail(query, FAY_E_REFUSED, call->a->name_span,
				      "`%s` on a %s is not supported yet: only whole names are "
				      "compared; a glob in cluster.Function(\"...\") can select",
				      name, fay_type_name(string->type));
	if (call->item_count != 1)
		return fay_query_fail(query, FAY_E_USAGE, call->span, "`%s` takes one string",
				      name);
	const struct fay_node *argument = call->items->value;
	const struct fay_expr *part = fay_check_typed(checked, scope, argument, TYPE_STRING,
						      method ? "what is looked for" : "a prefix");
	if (!part)
		return NULL;
	if (!fay_expr_is_constant(part))
		return fay_query_fail(query, FAY_E_USAGE, argument->span, "%s must be a constant",
				      method ? "what is looked for" : "a prefix");
	if (fay_expr_is_long(string)) {
		if (part->length > PART_MAX)
			return fay_query_fail(query, FAY_E_LIMIT, argument->span,
					      "%s may have at most %u bytes",
					      method ? "what is looked for" : "a prefix", PART_MAX);
	} else if (part->length >= FAY_COMM_SIZE && !fay_expr_is_constant(string)) {
		return fay_query_fail(query, FAY_E_USAGE, argument->span,
				      "%s has at most %d bytes, so this is never %s",
				      method || !fay_expr_is_comm(string) ? "a string"
									  : "a thread's name",
				      FAY_COMM_SIZE - 1, method ? "in it" : "its beginning");
	}
	return fay_check_scalar(checked,
				fay_expr_make(&checked->exprs, call->span, methods[method].op,
					      TYPE_BOOL, string, part, NULL));
}

struct fay_value_node *fay_check_string_length(struct fay_checked *checked,
					       const struct fay_node *node,
					       const struct fay_expr *string)
{
	return fay_check_scalar(checked, fay_expr_make(&checked->exprs, node->span, EXPR_LENGTH,
						       TYPE_INT, string, NULL, NULL));
}
