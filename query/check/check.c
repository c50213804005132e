/* SPDX-License-Identifier: MIT */
/*
 * Checking of expressions: names, members, calls, records, `Now`. Operators are in
 * operators.c, what an event has in event.c, sequences, groups and comprehensions in
 * sequence.c.
 */
#include "check_private.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

const char *fay_check_inferred_name(const struct fay_node *node)
{
	return node->kind == NODE_NAME || node->kind == NODE_MEMBER ? node->name : NULL;
}

const struct fay_expr *fay_check_typed(struct fay_checked *checked, const struct fay_scope *scope,
				       const struct fay_node *node, enum fay_type type,
				       const char *what)
{
	struct fay_value_node *value = fay_check_node(checked, scope, node);
	if (!value)
		return NULL;
	if (value->kind == VALUE_SCALAR && value->expr->type == type)
		return value->expr;
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
			      "%s must be %s %s, but this is %s", what,
			      type == TYPE_INT ? "an" : "a", fay_type_name(type),
			      fay_check_describe(checked, value));
}

/* --- names and members --- */

static struct fay_value_node *unknown_name(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *node)
{
	static const char *const globals[] = { "cluster", "machine", "process", "file",
					       "Now",     "kernel",  "true",    "false" };
	struct fay_query *query = checked->exprs.query;
	const char *candidates[64];
	size_t count = 0;
	for (const struct fay_scope *s = scope;
	     s && count < COUNT_OF(candidates) - COUNT_OF(globals); s = s->outer) {
		candidates[count++] = s->name;
		if (s->value->kind == VALUE_EVENT && fay_check_is_event_member(node->name))
			return fay_query_fail(query, FAY_E_USAGE, node->span,
					      "unknown name `%s`; did you mean `%s.%s`?",
					      node->name, s->name, node->name);
	}
	memcpy(candidates + count, globals, sizeof(globals));
	count += COUNT_OF(globals);
	if (checked->event_name && strcmp(node->name, checked->event_name) == 0)
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "`%s` is not known here: after `into` only the name that "
				      "follows it is",
				      node->name);
	return fay_query_fail(query, FAY_E_USAGE, node->span, "unknown name `%s`%s", node->name,
			      fay_query_did_you_mean(query, node->name, candidates, count));
}

static struct fay_value_node *check_name(struct fay_checked *checked, const struct fay_scope *scope,
					 const struct fay_node *node)
{
	for (const struct fay_scope *s = scope; s; s = s->outer)
		if (strcmp(s->name, node->name) == 0)
			return s->value;
	if (strcmp(node->name, "Now") == 0)
		return fay_check_scalar(checked, fay_expr_int(&checked->exprs, TYPE_TIME,
							      (int64_t)checked->exprs.query->now));
	if (strcmp(node->name, "cluster") == 0)
		return fay_check_value(checked, VALUE_CLUSTER);
	if (strcmp(node->name, "kernel") == 0)
		return fay_check_value(checked, VALUE_KERNEL);
	return unknown_name(checked, scope, node);
}

static struct fay_value_node *record_member(struct fay_checked *checked,
					    const struct fay_node *node,
					    const struct fay_value_node *record)
{
	const char *candidates[FAY_QUERY_MAX_COLUMNS];
	size_t count = 0;
	for (struct fay_member *m = record->members; m; m = m->next) {
		if (strcmp(m->name, node->name) == 0)
			return m->value;
		candidates[count++] = m->name;
	}
	return fay_query_fail(
		checked->exprs.query, FAY_E_USAGE, node->name_span, "unknown member `%s`%s",
		node->name,
		fay_query_did_you_mean(checked->exprs.query, node->name, candidates, count));
}

static struct fay_value_node *check_member(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *node)
{
	static const char *const group[] = { "Key",      "Count",         "Sum",       "Min",
					     "Max",      "Average",       "Histogram", "StdDev",
					     "Quantile", "TopK",          "First",     "Last",
					     "Any",      "DistinctCount", "Where",     "Select",
					     "Take",     "Distinct",      "OrderBy" };
	struct fay_query *query = checked->exprs.query;
	struct fay_value_node *object = fay_check_node(checked, scope, node->a);
	if (!object)
		return NULL;
	if (object->kind == VALUE_EVENT) {
		unsigned outside = fay_check_enter_side(checked, object->side);
		return fay_check_leave_side(checked, outside,
					    fay_check_event_member(checked, node));
	}
	if (object->kind == VALUE_RECORD)
		return record_member(checked, node, object);
	if (object->kind == VALUE_SCALAR && object->expr->type == TYPE_STRING &&
	    strcmp(node->name, "Length") == 0)
		return fay_check_string_length(checked, node, object->expr);
	if (fay_check_has_members(object))
		return fay_check_typed_member(checked, node, object);
	if (fay_check_is_symbol(node, object))
		return fay_check_symbol(checked, node, object->expr);
	if (fay_check_is_text(node, object))
		return fay_check_text(checked, node, object);
	if (object->kind == VALUE_GROUP && strcmp(node->name, "Key") == 0)
		return object->key ? object->key
				   : fay_query_fail(query, FAY_E_USAGE, node->name_span,
						    "the group of a join has no `Key`: the event "
						    "that it belongs to is known");
	if (object->kind == VALUE_GROUP || object->kind == VALUE_SEQUENCE) {
		for (size_t i = object->kind == VALUE_SEQUENCE; i < COUNT_OF(group); i++)
			if (strcmp(group[i], node->name) == 0)
				return fay_query_fail(query, FAY_E_USAGE, node->name_span,
						      "`%s` needs brackets: `%s()`", node->name,
						      node->name);
		return fay_query_fail(
			query, FAY_E_USAGE, node->name_span, "unknown `%s` of %s%s", node->name,
			fay_check_describe(checked, object),
			fay_query_did_you_mean(query, node->name, group, COUNT_OF(group)));
	}
	return fay_query_fail(query, FAY_E_USAGE, node->name_span, "%s has no member `%s`",
			      fay_check_describe(checked, object), node->name);
}

/* --- calls --- */

static struct fay_value_node *check_add_time(struct fay_checked *checked,
					     const struct fay_scope *scope,
					     const struct fay_node *call,
					     const struct fay_expr *time)
{
	static const char *const names[] = { "AddMilliseconds", "AddSeconds", "AddMinutes",
					     "AddHours" };
	static const double units[] = { 1e6, 1e9, 60e9, 3600e9 };
	struct fay_query *query = checked->exprs.query;
	const char *name = call->a->name;
	size_t unit = 0;
	while (unit < COUNT_OF(names) && strcmp(names[unit], name) != 0)
		unit++;
	if (unit == COUNT_OF(names))
		return fay_query_fail(query, FAY_E_USAGE, call->a->name_span,
				      "a time has no method `%s`%s", name,
				      fay_query_did_you_mean(query, name, names, COUNT_OF(names)));
	if (call->item_count != 1)
		return fay_query_fail(query, FAY_E_USAGE, call->span, "`%s` takes one number",
				      name);
	const struct fay_node *argument = call->items->value;
	struct fay_value_node *value = fay_check_node(checked, scope, argument);
	if (!value)
		return NULL;
	if (value->kind != VALUE_SCALAR ||
	    (value->expr->type != TYPE_INT && value->expr->type != TYPE_REAL) ||
	    !fay_expr_is_constant(value->expr))
		return fay_query_fail(query, FAY_E_USAGE, argument->span,
				      "`%s` takes a constant number", name);
	double ns =
		(value->expr->type == TYPE_INT ? (double)value->expr->value : value->expr->real) *
		units[unit];
	if (!(ns < 9.2e18 && ns > -9.2e18))
		return fay_query_fail(query, FAY_E_USAGE, argument->span,
				      "this is further away than 292 years");
	int64_t offset = (int64_t)(ns + (ns < 0 ? -0.5 : 0.5));
	if (value->expr->type == TYPE_INT) /* exact, where a double is not */
		offset = value->expr->value * (int64_t)units[unit];
	if (fay_expr_is_constant(time)) {
		uint64_t then;
		if (offset >= 0
			    ? __builtin_add_overflow((uint64_t)time->value, (uint64_t)offset, &then)
			    : __builtin_sub_overflow((uint64_t)time->value, 0 - (uint64_t)offset,
						     &then))
			return fay_query_fail(query, FAY_E_USAGE, call->span,
					      "this time is out of range (1970 to 2554)");
	}
	const struct fay_expr *addend = fay_expr_int(&checked->exprs, TYPE_TIME, offset);
	return addend ? fay_check_scalar(checked,
					 fay_expr_make(&checked->exprs, call->span, EXPR_ADD,
						       TYPE_TIME, time, addend, NULL))
		      : NULL;
}

/* Of what is called, and is no function. */
static const char *hint_of_name(struct fay_query *query, const char *name)
{
	static const char *const functions[] = { "file", "process", "machine" };
	if (fay_check_source_kind(name) != SOURCE_NONE)
		return "; sources are the cluster's: `cluster.Function(...)`";
	return fay_query_did_you_mean(query, name, functions, COUNT_OF(functions));
}

/* A function that other languages have where a method is here. */
static const char *hint_of_function(struct fay_query *query, const char *name)
{
	static const char *const aggregates[][2] = { { "count", "g.Count()" },
						     { "sum", "g.Sum(x => ...)" },
						     { "avg", "g.Average(x => ...)" },
						     { "min", "g.Min(x => ...)" },
						     { "max", "g.Max(x => ...)" } };
	for (size_t i = 0; i < COUNT_OF(aggregates); i++)
		if (!strcasecmp(name, aggregates[i][0]))
			return fay_query_format(query, "; of a group that is `%s`",
						aggregates[i][1]);
	return hint_of_name(query, name);
}

static struct fay_value_node *check_call(struct fay_checked *checked, const struct fay_scope *scope,
					 const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	if (call->a->kind == NODE_NAME && fay_check_is_function_call(query, call))
		return fay_check_function_call(checked, scope, call);
	if (call->a->kind == NODE_NAME && strcmp(call->a->name, "file") == 0)
		return fay_check_file(checked, call);
	if (call->a->kind == NODE_NAME && strcmp(call->a->name, "process") == 0)
		return fay_check_process(checked, scope, call, NULL);
	if (call->a->kind == NODE_NAME && strcmp(call->a->name, "machine") == 0)
		return fay_check_machine(checked, call);
	if (call->a->kind == NODE_NAME && query->extension_count)
		return fay_check_function_call(checked, scope, call);
	if (call->a->kind != NODE_MEMBER)
		return fay_query_fail(
			query, FAY_E_USAGE, call->a->span,
			"only methods can be called, as in `io.Arg(0)`%s",
			call->a->kind == NODE_NAME ? hint_of_function(query, call->a->name) : "");
	if (fay_check_is_file_source(call))
		return fay_check_file_source(checked, call);
	struct fay_value_node *object = fay_check_node(checked, scope, call->a->a);
	if (!object)
		return NULL;
	switch (object->kind) {
	case VALUE_CLUSTER:
		if (object->machine && !object->process && strcmp(call->a->name, "process") == 0)
			return fay_check_process(checked, scope, call, object->machine);
		return fay_check_one_origin(checked, call, object)
			       ? fay_check_cluster_method(checked, scope, call)
			       : NULL;
	case VALUE_GROUP:
	case VALUE_SEQUENCE: return fay_check_method(checked, scope, call, object);
	case VALUE_EVENT: {
		unsigned outside = fay_check_enter_side(checked, object->side);
		return fay_check_leave_side(checked, outside,
					    fay_check_event_call(checked, scope, call));
	}
	case VALUE_SCALAR:
		if (object->expr->type == TYPE_TIME && !object->expr->has_aggregate)
			return check_add_time(checked, scope, call, object->expr);
		if (object->expr->type == TYPE_STRING || object->expr->type == TYPE_FUNCTION ||
		    object->expr->type == TYPE_MODULE)
			return fay_check_string_method(checked, scope, call, object->expr);
		break;
	default: break;
	}
	return fay_query_fail(
		query, FAY_E_USAGE, call->a->name_span, "%s has no method `%s`%s",
		fay_check_describe(checked, object), call->a->name,
		object->kind == VALUE_KERNEL
			? "; functions of the kernel are `cluster.Function(kernel, \"name\")`"
			: "");
}

static struct fay_value_node *
check_index(struct fay_checked *checked, const struct fay_scope *scope, const struct fay_node *node)
{
	const struct fay_value_node *object = fay_check_node(checked, scope, node->a);
	const struct fay_expr *index =
		object ? fay_check_typed(checked, scope, node->b, TYPE_INT, "an index") : NULL;
	return index ? fay_check_element(checked, node, object, index) : NULL;
}

static struct fay_value_node *check_new(struct fay_checked *checked, const struct fay_scope *scope,
					const struct fay_node *node)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_value_node *record = fay_check_value(checked, VALUE_RECORD);
	if (!record)
		return NULL;
	if (node->item_count > FAY_QUERY_MAX_COLUMNS)
		return fay_query_fail(query, FAY_E_LIMIT, node->span,
				      "a record may have at most %u members",
				      FAY_QUERY_MAX_COLUMNS);
	struct fay_member **tail = &record->members;
	for (struct fay_argument *item = node->items; item; item = item->next) {
		struct fay_member *member = fay_query_alloc(query, sizeof(*member));
		const char *name = item->name ? item->name : fay_check_inferred_name(item->value);
		struct fay_span span = item->name ? item->name_span : item->value->span;
		if (!member)
			return NULL;
		if (!name)
			return fay_query_fail(query, FAY_E_USAGE, span,
					      "this column needs a name: `new { NAME = ... }`");
		for (struct fay_member *m = record->members; m; m = m->next)
			if (strcmp(m->name, name) == 0)
				return fay_query_fail(query, FAY_E_USAGE, span,
						      "there are two columns `%s`", name);
		member->name = name;
		member->value = fay_check_node(checked, scope, item->value);
		if (!member->value)
			return NULL;
		*tail = member;
		tail = &member->next;
	}
	return record;
}

static struct fay_value_node *check_any(struct fay_checked *checked, const struct fay_scope *scope,
					const struct fay_node *node)
{
	struct fay_exprs *exprs = &checked->exprs;
	switch (node->kind) {
	case NODE_INTEGER:
		return fay_check_scalar(checked,
					fay_expr_int(exprs, TYPE_INT, (int64_t)node->integer));
	case NODE_REAL: return fay_check_scalar(checked, fay_expr_real(exprs, node->real));
	case NODE_STRING:
		return fay_check_scalar(checked, fay_expr_string(exprs, node->name, node->length));
	case NODE_BOOL:
		return fay_check_scalar(checked,
					fay_expr_int(exprs, TYPE_BOOL, (int64_t)node->integer));
	case NODE_NAME: return check_name(checked, scope, node);
	case NODE_MEMBER: return check_member(checked, scope, node);
	case NODE_INDEX: return check_index(checked, scope, node);
	case NODE_CALL: return check_call(checked, scope, node);
	case NODE_UNARY: return fay_check_scalar(checked, fay_check_unary(checked, scope, node));
	case NODE_BINARY: return fay_check_scalar(checked, fay_check_binary(checked, scope, node));
	case NODE_COND: return fay_check_scalar(checked, fay_check_cond(checked, scope, node));
	case NODE_NEW: return check_new(checked, scope, node);
	case NODE_QUERY: return fay_check_comprehension(checked, scope, node);
	case NODE_LAMBDA: break;
	}
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
			      "a lambda can only be given to a method such as `Where`");
}

struct fay_value_node *fay_check_node(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node)
{
	struct fay_value_node *value = check_any(checked, scope, node);
	const struct fay_query_options *options = checked->exprs.query->options;
	if (value && options && options->part)
		options->part(options->part_context, node->span.start, node->span.end,
			      fay_check_describe(checked, value));
	return value;
}
