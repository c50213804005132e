/* SPDX-License-Identifier: MIT */
/* Functions of C: the files that `extend "my.c"` names, and calls of what is in them. */
#include "check_private.h"

#include "fay/extension.h"

#include <string.h>

/* A function of the query's C files; NULL: there is none of this name. */
static const struct fay_extension_function *find(const struct fay_query *query, const char *name,
						 uint32_t *file, uint32_t *index)
{
	for (*file = 0; *file < query->extension_count; ++*file) {
		const struct fay_extension *code = query->extensions[*file].code;
		for (*index = 0; code && *index < code->function_count; ++*index)
			if (strcmp(code->functions[*index].name, name) == 0)
				return &code->functions[*index];
	}
	return NULL;
}

static bool compile(struct fay_query *query, struct fay_query_extension *extension)
{
	struct fay_extension *code;
	struct fay_error error = { 0 };
	uint32_t file, index;
	if (!query->options || !query->options->extend)
		return fay_query_fail(query, FAY_E_REFUSED, extension->span,
				      "a query cannot be extended by C files here") != NULL;
	if (fay_extension_open(extension->path, &code, &error))
		return fay_query_fail(query, error.code, extension->span, "%s", error.message) !=
		       NULL;
	for (uint32_t i = 0; i < code->function_count; i++)
		if (find(query, code->functions[i].name, &file, &index)) {
			fay_query_fail(query, FAY_E_USAGE, extension->span,
				       "the function `%s` is in %s, too", code->functions[i].name,
				       query->extensions[file].path);
			fay_extension_close(code);
			return false;
		}
	extension->code = code;
	return true;
}

bool fay_check_extensions(struct fay_query *query)
{
	for (uint32_t i = 0; i < query->extension_count; i++)
		if (!compile(query, &query->extensions[i]))
			return false;
	return true;
}

static void *fail_unknown(struct fay_query *query, const struct fay_node *name)
{
	const char *candidates[64];
	size_t count = 0;
	for (uint32_t file = 0; file < query->extension_count; file++)
		for (uint32_t i = 0; i < query->extensions[file].code->function_count && count < 64;
		     i++)
			candidates[count++] = query->extensions[file].code->functions[i].name;
	const char *hint = fay_query_did_you_mean(query, name->name, candidates, count);
	return fay_query_fail(query, FAY_E_USAGE, name->span, "there is no function `%s` in %s%s%s",
			      name->name, query->extensions[0].path,
			      query->extension_count > 1
				      ? " and the other files that the query is extended by"
				      : "",
			      hint);
}

static const char *type_name(const struct fay_extension_type *type)
{
	return fay_type_name(type->kind == FAY_EXTENSION_STRING ? TYPE_STRING
			     : type->kind == FAY_EXTENSION_BOOL ? TYPE_BOOL
								: TYPE_INT);
}

/* One argument of a call: of the parameter's type, and known in the probe. */
static const struct fay_expr *check_argument(struct fay_checked *checked,
					     const struct fay_scope *scope,
					     const struct fay_node *node, const char *function,
					     const struct fay_extension_type *type)
{
	static const enum fay_type types[] = { [FAY_EXTENSION_INTEGER] = TYPE_INT,
					       [FAY_EXTENSION_BOOL] = TYPE_BOOL,
					       [FAY_EXTENSION_STRING] = TYPE_STRING };
	struct fay_query *query = checked->exprs.query;
	struct fay_value_node *value = fay_check_node(checked, scope, node);
	if (!value)
		return NULL;
	if (value->kind != VALUE_SCALAR || value->expr->type != types[type->kind])
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "`%s` takes %s %s here, but this is %s", function,
				      type->kind == FAY_EXTENSION_INTEGER ? "an" : "a",
				      type_name(type), fay_check_describe(checked, value));
	if (value->expr->has_aggregate)
		return fay_query_fail(
			query, FAY_E_REFUSED, node->span,
			"`%s` runs in the probe, on events, where no aggregate is known", function);
	if (value->expr->type == TYPE_STRING && fay_expr_is_constant(value->expr) &&
	    value->expr->length >= FAY_COMM_SIZE)
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "a string has at most %d bytes", FAY_COMM_SIZE - 1);
	return value->expr;
}

/* Native probes call functions: of a join those of one source, elsewhere those that are not BPF
 * programs. */
static struct fay_value_node *check_place(struct fay_checked *checked, const struct fay_node *call,
					  const struct fay_expr *expr)
{
	struct fay_query *query = checked->exprs.query;
	enum fay_source kind = checked->kind;
	enum fay_domain domain = checked->domain;
	if (expr->op == EXPR_SIDE) {
		kind = checked->join->sources[expr->value + 1].kind;
		domain = checked->join->sources[expr->value + 1].domain;
	} else if (checked->join && !checked->join->active) {
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "in a join `%s` takes values of one event, before grouping: "
				      "write `let x = %s(...)` after that event's source",
				      call->a->name, call->a->name);
	}
	if (domain == DOMAIN_KERNEL && fay_source_is_bpf(kind))
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "C functions run in native probes; events of system calls, "
				      "tracepoints and timers come through BPF");
	return fay_check_scalar(checked, expr);
}

bool fay_check_is_function_call(const struct fay_query *query, const struct fay_node *call)
{
	uint32_t file, index;
	bool of_events = false;
	for (const struct fay_argument *item = call->items; item; item = item->next)
		of_events |= item->value->kind != NODE_STRING && item->value->kind != NODE_INTEGER;
	return of_events && find(query, call->a->name, &file, &index);
}

struct fay_value_node *fay_check_function_call(struct fay_checked *checked,
					       const struct fay_scope *scope,
					       const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_expr *arguments[FAY_EXTENSION_PARAMETERS];
	const char *name = call->a->name;
	uint32_t file, index, count = 0;
	const struct fay_extension_function *f = find(query, name, &file, &index);
	if (!f)
		return fail_unknown(query, call->a);
	if (f->unfit)
		return fay_query_fail(query, FAY_E_REFUSED, call->a->span,
				      "`%s` cannot be called by a query: it %s", name, f->unfit);
	if (call->item_count != f->parameter_count)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`%s` takes %u argument%s, not %u", name, f->parameter_count,
				      f->parameter_count == 1 ? "" : "s", call->item_count);
	bool constant = true;
	for (const struct fay_argument *item = call->items; item; item = item->next, count++) {
		arguments[count] =
			check_argument(checked, scope, item->value, name, &f->parameters[count]);
		if (!arguments[count])
			return NULL;
		constant &= fay_expr_is_constant(arguments[count]);
	}
	if (constant)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`%s` does not depend on the event: write its value instead",
				      name);
	const struct fay_expr *expr = fay_expr_call(
		&checked->exprs, call->span, file, index,
		f->result.kind == FAY_EXTENSION_BOOL ? TYPE_BOOL : TYPE_INT, arguments, count);
	return expr ? check_place(checked, call, expr) : NULL;
}
