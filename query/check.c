/* SPDX-License-Identifier: MIT */
/*
 * Checking of expressions: names, members, operators, `Now` and the event's methods. Sequences, groups
 * and comprehensions are in check_sequence.c.
 */
#include "check_join.h"
#include "check_types.h"
#include "source_file.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

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
		[VALUE_EVENT] = "an event",	    [VALUE_RECORD] = "a record",
		[VALUE_GROUP] = "a group",	    [VALUE_SEQUENCE] = "a sequence",
		[VALUE_CLUSTER] = "the cluster", [VALUE_KERNEL] = "the kernel",
		[VALUE_OBJECT] = "a structure or an array",
	};
	if (value->kind != VALUE_SCALAR)
		return kinds[value->kind];
	const char *name = fay_type_name(value->expr->type);
	return fay_query_format(checked->exprs.query, "%s %s",
				value->expr->type == TYPE_INT ? "an" : "a", name);
}

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

static bool is_event_member(const char *name)
{
	for (size_t i = 0; i < fay_field_count; i++)
		if (fay_fields[i].sources && strcmp(fay_fields[i].name, name) == 0)
			return true;
	return strcmp(name, "Arg") == 0 || strcmp(name, "Caller") == 0 || fay_check_is_stack(name);
}

static struct fay_value_node *unknown_name(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *node)
{
	static const char *const globals[] = {"cluster", "process", "file", "Now", "kernel", "true", "false"};
	struct fay_query *query = checked->exprs.query;
	const char *candidates[64];
	size_t count = 0;
	for (const struct fay_scope *s = scope; s && count < 57; s = s->outer) {
		candidates[count++] = s->name;
		if (s->value->kind == VALUE_EVENT && is_event_member(node->name))
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

static struct fay_value_node *check_name(struct fay_checked *checked,
					 const struct fay_scope *scope,
					 const struct fay_node *node)
{
	for (const struct fay_scope *s = scope; s; s = s->outer)
		if (strcmp(s->name, node->name) == 0)
			return s->value;
	if (strcmp(node->name, "Now") == 0)
		return fay_check_scalar(checked,
					fay_expr_int(&checked->exprs, TYPE_TIME,
						     (int64_t)checked->exprs.query->now));
	if (strcmp(node->name, "cluster") == 0)
		return fay_check_value(checked, VALUE_CLUSTER);
	if (strcmp(node->name, "kernel") == 0)
		return fay_check_value(checked, VALUE_KERNEL);
	return unknown_name(checked, scope, node);
}

/* A name that events of the other sources have. */
static void *fail_elsewhere(struct fay_checked *checked, const struct fay_node *node, bool of_return)
{
	if (of_return)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->name_span,
				      "`%s` is known when a call ends: use cluster.Return(...) as the source",
				      node->name);
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->name_span,
			      "`%s` is known when a call begins: use cluster.Function(...) as the source",
			      node->name);
}

static struct fay_value_node *event_member(struct fay_checked *checked,
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
			return fay_query_fail(query, FAY_E_USAGE, node->name_span, "events of cluster.%s have no `%s`",
					      checked->kind == SOURCE_SYSCALL ? "Syscall" : checked->kind == SOURCE_TIMER ? "Timer" : "Tracepoint", node->name);
		if (!here)
			return fail_elsewhere(checked, node, true);
		if (checked->domain == DOMAIN_FILE && !fay_check_saved(checked, node->name_span, field->name))
			return NULL;
		checked->uses_failed |= field->size == 0;
		checked->uses_end |= field->sources == (SOURCE_RETURN | SOURCE_SYSCALL);
		checked->uses_duration |= field->offset == offsetof(struct fay_event, duration);
		const struct fay_expr *value = fay_expr_field(&checked->exprs, field);
		bool result = checked->kind == SOURCE_RETURN && checked->domain == DOMAIN_USER && field->offset == offsetof(struct fay_event, retval);
		return value && result ? fay_check_function_result(checked, value) : fay_check_scalar(checked, value);
	}
	if (strcmp(node->name, "Caller") == 0)
		return fay_check_caller(checked, node);
	if (fay_check_is_stack(node->name))
		return fay_check_stack(checked, node);
	if (strcmp(node->name, "Arg") == 0)
		return checked->kind != SOURCE_RETURN || fay_check_keeps_arguments(checked)
			       ? fay_query_fail(query, FAY_E_USAGE, node->name_span,
						"`Arg` needs a number: `Arg(0)` is the first argument")
			       : fail_elsewhere(checked, node, false);
	if (checked->kind != SOURCE_RETURN || fay_check_keeps_arguments(checked))
		candidates[count++] = "Arg";
	if (checked->kind == SOURCE_ENTRY && checked->domain == DOMAIN_USER)
		candidates[count++] = "Caller";
	if (checked->domain == DOMAIN_KERNEL || checked->kind != SOURCE_RETURN) {
		candidates[count++] = "Stack";
		candidates[count++] = "UserStack";
	}
	if (checked->domain == DOMAIN_KERNEL)
		candidates[count++] = "KernelStack";
	struct fay_value_node *argument = checked->kernel ? fay_check_kernel_argument(checked, node) : fay_check_function_argument(checked, node);
	if (argument || query->failed)
		return argument;
	for (uint32_t i = 0; checked->kernel && i < checked->kernel->argument_count; i++)
		candidates[count++] = checked->kernel->arguments[i].name;
	count += fay_check_function_names(checked, candidates + count, COUNT_OF(candidates) - count);
	const char *hint = fay_query_did_you_mean(query, node->name, candidates, count);
	const char *event = node->a->kind == NODE_NAME ? node->a->name : "";
	return fay_query_fail(query, FAY_E_USAGE, node->name_span, "unknown field `%s` of event%s%s%s%s", node->name, *event ? " `" : "", event, *event ? "`" : "",
			      *hint ? hint : fay_check_function_reason(checked));
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
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->name_span,
			      "unknown member `%s`%s", node->name,
			      fay_query_did_you_mean(checked->exprs.query, node->name, candidates,
						     count));
}

static struct fay_value_node *check_member(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *node)
{
	static const char *const group[] = {"Key",    "Count",	  "Sum",   "Min",      "Max",	   "Average", "Histogram",
					    "StdDev", "Quantile", "TopK",  "First",    "Last",	   "Any",     "DistinctCount",
					    "Where",  "Select",	  "Take",  "Distinct", "OrderBy"};
	struct fay_query *query = checked->exprs.query;
	struct fay_value_node *object = fay_check_node(checked, scope, node->a);
	if (!object)
		return NULL;
	if (object->kind == VALUE_EVENT) {
		unsigned outside = fay_check_enter_side(checked, object->side);
		return fay_check_leave_side(checked, outside, event_member(checked, node));
	}
	if (object->kind == VALUE_RECORD)
		return record_member(checked, node, object);
	if (object->kind == VALUE_SCALAR && object->expr->type == TYPE_STRING && strcmp(node->name, "Length") == 0)
		return fay_check_string_length(checked, node, object->expr);
	if (fay_check_has_members(object))
		return fay_check_typed_member(checked, node, object);
	if (object->kind == VALUE_GROUP && strcmp(node->name, "Key") == 0)
		return object->key;
	if (object->kind == VALUE_GROUP || object->kind == VALUE_SEQUENCE) {
		for (size_t i = object->kind == VALUE_SEQUENCE; i < COUNT_OF(group); i++)
			if (strcmp(group[i], node->name) == 0)
				return fay_query_fail(query, FAY_E_USAGE, node->name_span,
						      "`%s` needs brackets: `%s()`", node->name,
						      node->name);
		return fay_query_fail(query, FAY_E_USAGE, node->name_span, "unknown `%s` of %s%s",
				      node->name, fay_check_describe(checked, object),
				      fay_query_did_you_mean(query, node->name, group,
							     COUNT_OF(group)));
	}
	return fay_query_fail(query, FAY_E_USAGE, node->name_span, "%s has no member `%s`",
			      fay_check_describe(checked, object), node->name);
}

/* --- calls --- */

static struct fay_value_node *check_arg(struct fay_checked *checked,
					const struct fay_scope *scope, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	if (checked->kind == SOURCE_RETURN && !fay_check_keeps_arguments(checked))
		return fail_elsewhere(checked, call->a, false);
	checked->return_arguments |= checked->kind == SOURCE_RETURN;
	if (checked->kind == SOURCE_TIMER)
		return fay_query_fail(query, FAY_E_USAGE, call->span, "events of cluster.Timer have no arguments");
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
	if (checked->kind == SOURCE_TRACEPOINT)
		return fay_check_kernel_arg(checked, index, expr->value < 0 || expr->value > 11 ? 12 : (uint32_t)expr->value);
	if (expr->value < 0 || expr->value > 5)
		return fay_query_fail(query, FAY_E_USAGE, index->span,
				      "there is no argument %lld: `Arg` takes 0 to 5, the six "
				      "arguments in registers",
				      (long long)expr->value);
	if (checked->domain == DOMAIN_FILE &&
	    !fay_check_saved(checked, call->span, fay_query_format(query, "Arg(%lld)", (long long)expr->value)))
		return NULL;
	return fay_check_scalar(checked, fay_expr_arg(&checked->exprs, (unsigned)expr->value));
}

static struct fay_value_node *check_add_time(struct fay_checked *checked,
					     const struct fay_scope *scope,
					     const struct fay_node *call,
					     const struct fay_expr *time)
{
	static const char *const names[] = {"AddMilliseconds", "AddSeconds", "AddMinutes",
					    "AddHours"};
	static const double units[] = {1e6, 1e9, 60e9, 3600e9};
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
		return fay_query_fail(query, FAY_E_USAGE, call->span, "`%s` takes one number", name);
	const struct fay_node *argument = call->items->value;
	struct fay_value_node *value = fay_check_node(checked, scope, argument);
	if (!value)
		return NULL;
	if (value->kind != VALUE_SCALAR ||
	    (value->expr->type != TYPE_INT && value->expr->type != TYPE_REAL) ||
	    !fay_expr_is_constant(value->expr))
		return fay_query_fail(query, FAY_E_USAGE, argument->span,
				      "`%s` takes a constant number", name);
	double ns = (value->expr->type == TYPE_INT ? (double)value->expr->value
						   : value->expr->real) *
		    units[unit];
	if (!(ns < 9.2e18 && ns > -9.2e18))
		return fay_query_fail(query, FAY_E_USAGE, argument->span,
				      "this is further away than 292 years");
	int64_t offset = (int64_t)(ns + (ns < 0 ? -0.5 : 0.5));
	if (value->expr->type == TYPE_INT) /* exact, where a double is not */
		offset = value->expr->value * (int64_t)units[unit];
	if (fay_expr_is_constant(time)) {
		uint64_t then;
		if (offset >= 0 ? __builtin_add_overflow((uint64_t)time->value, (uint64_t)offset, &then)
				: __builtin_sub_overflow((uint64_t)time->value,
							 0 - (uint64_t)offset, &then))
			return fay_query_fail(query, FAY_E_USAGE, call->span,
					      "this time is out of range (1970 to 2554)");
	}
	const struct fay_expr *addend = fay_expr_int(&checked->exprs, TYPE_TIME, offset);
	return addend ? fay_check_scalar(checked, fay_expr_make(&checked->exprs, call->span, EXPR_ADD,
								TYPE_TIME, time, addend, NULL))
		      : NULL;
}

/* Other tracers write module:function; who does so here is shown the same name with a `!`. */
static void *fail_without_module(struct fay_query *query, const struct fay_node *at, const char *pattern)
{
	const char *colon = strchr(pattern, ':');
	if (colon && colon != pattern && colon[1] && at->length < 64)
		return fay_query_fail(query, FAY_E_USAGE, at->span,
				      "a function is given as \"module!function\": \"%.*s!%s\"",
				      (int)(colon - pattern), pattern, colon + 1);
	return fay_query_fail(query, FAY_E_USAGE, at->span,
			      "a function is given as \"module!function\", for example \"libc!%s\"",
			      at->length && at->length < 64 ? pattern : "read");
}

/* "module!function" in one string or two; NULL on error. */
static const char *check_pattern(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_argument *first = call->items, *second = first ? first->next : NULL;
	for (struct fay_argument *item = first; item; item = item->next)
		if (item->value->kind != NODE_STRING &&
		    !(item == first && call->item_count == 2 && checked->domain == DOMAIN_KERNEL))
			return fay_query_fail(query, FAY_E_USAGE, item->value->span,
					      "`%s` takes a string such as \"libc!read\"",
					      call->a->name);
	if (call->item_count < 1 || call->item_count > 2)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`%s` takes one string such as \"libc!read\"", call->a->name);
	const struct fay_node *last = second ? second->value : first->value;
	const char *module = checked->domain == DOMAIN_KERNEL ? "kernel" : second ? first->value->name : NULL;
	const char *pattern = module ? fay_query_format(query, "%s!%s", module, last->name)
				     : last->name;
	if (!pattern)
		return NULL;
	const char *bang = strchr(pattern, '!');
	if (!bang)
		return fail_without_module(query, last, pattern);
	if (bang == pattern || !bang[1] || strchr(bang + 1, '!'))
		return fay_query_fail(query, FAY_E_USAGE, last->span,
				      "a function is given as \"module!function\", with one `!`");
	if (strlen(pattern) >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, FAY_E_LIMIT, last->span,
				      "a function's pattern may have %u bytes",
				      FAY_IMAGE_MAX_STRING - 1);
	for (const char *c = pattern; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return fay_query_fail(query, FAY_E_USAGE, last->span,
					      "a function's pattern has no blanks");
	return pattern;
}

/* "module!provider:name"; NULL on error. */
static const char *check_marker_pattern(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	if (!at || at->kind != NODE_STRING)
		return fay_query_fail(query, FAY_E_USAGE, at ? at->span : call->span,
				      "`Usdt` takes one string such as "
				      "\"postgres!postgresql:query__start\"");
	const char *pattern = at->name, *bang = strchr(pattern, '!');
	const char *colon = bang ? strchr(bang, ':') : NULL;
	if (!bang || bang == pattern || strchr(bang + 1, '!') || !colon || colon == bang + 1 || !colon[1])
		return fay_query_fail(query, FAY_E_USAGE, at->span,
				      "a marker is given as \"module!provider:name\", for example "
				      "\"postgres!postgresql:query__start\"; `*` stands for any part");
	if (at->length >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, FAY_E_LIMIT, at->span,
				      "a marker's pattern may have %u bytes", FAY_IMAGE_MAX_STRING - 1);
	for (const char *c = pattern; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return fay_query_fail(query, FAY_E_USAGE, at->span,
					      "a marker's pattern has no blanks");
	return pattern;
}

static struct fay_value_node *check_cluster_method(struct fay_checked *checked,
						   const struct fay_scope *scope,
						   const struct fay_node *call)
{
	static const char *const names[] = {"Function", "Return", "Usdt", "Syscall", "Tracepoint", "Timer"};
	static const enum fay_source kinds[] = {SOURCE_ENTRY, SOURCE_RETURN, SOURCE_MARKER, SOURCE_SYSCALL, SOURCE_TRACEPOINT, SOURCE_TIMER};
	struct fay_query *query = checked->exprs.query;
	size_t source = 0;
	while (source < COUNT_OF(names) && strcmp(call->a->name, names[source]) != 0)
		source++;
	if (source == COUNT_OF(names))
		return fay_query_fail(query, FAY_E_USAGE, call->a->name_span,
				      "the cluster has no method `%s`%s", call->a->name,
				      fay_query_did_you_mean(query, call->a->name, names,
							     COUNT_OF(names)));
	if (checked->pattern)
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "a second source stands in a join: `join b in cluster.%s(...) on a.tid equals b.tid within 5ms`", call->a->name);
	checked->kind = kinds[source];
	bool marker = checked->kind == SOURCE_MARKER, point = fay_source_is_bpf(checked->kind);
	if (!marker && !point && call->item_count == 2 && call->items->value->kind == NODE_NAME) {
		struct fay_value_node *where = check_name(checked, scope, call->items->value);
		if (!where)
			return NULL;
		checked->domain = where->kind == VALUE_KERNEL ? DOMAIN_KERNEL : DOMAIN_USER;
	}
	checked->pattern = marker  ? check_marker_pattern(checked, call)
			   : checked->kind == SOURCE_TIMER ? fay_check_timer(checked, call)
			   : point ? fay_check_kernel_pattern(checked, call)
				   : check_pattern(checked, call);
	checked->source = call->span;
	if (checked->pattern && checked->domain == DOMAIN_KERNEL && !point && !fay_check_kernel_function(checked, checked->pattern))
		return NULL;
	struct fay_value_node *sequence =
		checked->pattern ? fay_check_value(checked, VALUE_SEQUENCE) : NULL;
	if (sequence)
		sequence->element = fay_check_value(checked, VALUE_EVENT);
	return sequence && sequence->element ? sequence : NULL;
}

/* event.name(arguments) */
static struct fay_value_node *event_call(struct fay_checked *checked, const struct fay_scope *scope, const struct fay_node *call)
{
	if (strcmp(call->a->name, "Arg") == 0)
		return check_arg(checked, scope, call);
	if (fay_check_is_stack(call->a->name))
		return fay_check_stack_call(checked, scope, call);
	if (is_event_member(call->a->name))
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, call->span, "`%s` is a field, not a method", call->a->name);
	return event_member(checked, call->a);
}

static struct fay_value_node *check_call(struct fay_checked *checked,
					 const struct fay_scope *scope,
					 const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	if (call->a->kind == NODE_NAME && strcmp(call->a->name, "file") == 0)
		return fay_check_file(checked, call);
	if (call->a->kind == NODE_NAME && strcmp(call->a->name, "process") == 0)
		return fay_check_process(checked, scope, call);
	if (call->a->kind != NODE_MEMBER)
		return fay_query_fail(query, FAY_E_USAGE, call->a->span,
				      "only methods can be called, as in `io.Arg(0)`");
	struct fay_value_node *object = fay_check_node(checked, scope, call->a->a);
	if (!object)
		return NULL;
	switch (object->kind) {
	case VALUE_CLUSTER:
		return fay_check_one_process(checked, call, object->process) ? check_cluster_method(checked, scope, call) : NULL;
	case VALUE_GROUP:
	case VALUE_SEQUENCE:
		return fay_check_method(checked, scope, call, object);
	case VALUE_EVENT: {
		unsigned outside = fay_check_enter_side(checked, object->side);
		return fay_check_leave_side(checked, outside, event_call(checked, scope, call));
	}
	case VALUE_SCALAR:
		if (object->expr->type == TYPE_TIME && !object->expr->has_aggregate)
			return check_add_time(checked, scope, call, object->expr);
		if (object->expr->type == TYPE_STRING || object->expr->type == TYPE_FUNCTION ||
		    object->expr->type == TYPE_MODULE)
			return fay_check_string_method(checked, scope, call, object->expr);
		break;
	default:
		break;
	}
	return fay_query_fail(query, FAY_E_USAGE, call->a->name_span, "%s has no method `%s`",
			      fay_check_describe(checked, object), call->a->name);
}

/* --- operators --- */

static const struct {
	enum fay_operator token;
	enum fay_expr_op op;
	enum { ARITHMETIC, EQUALITY, ORDER, LOGIC } group;
} binary_operators[] = {
	{OPERATOR_ADD, EXPR_ADD, ARITHMETIC},	  {OPERATOR_SUB, EXPR_SUB, ARITHMETIC},
	{OPERATOR_MUL, EXPR_MUL, ARITHMETIC},	  {OPERATOR_DIV, EXPR_DIV, ARITHMETIC},
	{OPERATOR_MOD, EXPR_MOD, ARITHMETIC},	  {OPERATOR_SHL, EXPR_SHL, ARITHMETIC},
	{OPERATOR_SHR, EXPR_SHR, ARITHMETIC},	  {OPERATOR_SHR_LOGICAL, EXPR_SHR_LOGICAL, ARITHMETIC},
	{OPERATOR_BIT_AND, EXPR_BIT_AND, ARITHMETIC}, {OPERATOR_BIT_OR, EXPR_BIT_OR, ARITHMETIC},
	{OPERATOR_BIT_XOR, EXPR_BIT_XOR, ARITHMETIC}, {OPERATOR_EQ, EXPR_EQ, EQUALITY},
	{OPERATOR_NE, EXPR_NE, EQUALITY},	  {OPERATOR_LT, EXPR_LT, ORDER},
	{OPERATOR_LE, EXPR_LE, ORDER},		  {OPERATOR_GT, EXPR_GT, ORDER},
	{OPERATOR_GE, EXPR_GE, ORDER},		  {OPERATOR_AND, EXPR_AND, LOGIC},
	{OPERATOR_OR, EXPR_OR, LOGIC},
};

/* What an operand must be: a scalar that the probe can compute with. */
static const struct fay_expr *operand(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node)
{
	struct fay_value_node *value = fay_check_node(checked, scope, node);
	if (!value)
		return NULL;
	struct fay_query *query = checked->exprs.query;
	if (value->kind != VALUE_SCALAR)
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "an operator needs a number, string or time, but this is %s",
				      fay_check_describe(checked, value));
	return value->expr;
}

static bool is_name_hash(enum fay_type type)
{
	return type == TYPE_FUNCTION || type == TYPE_MODULE;
}

/* A string constant compared with a function or module stands for its name's hash, with an enumeration for its constant. */
static const struct fay_expr *adapt(struct fay_checked *checked, const struct fay_node *node,
				    const struct fay_expr *expr, const struct fay_expr *other)
{
	struct fay_query *query = checked->exprs.query;
	if (expr->type != TYPE_STRING || !fay_expr_is_constant(expr))
		return expr;
	if (is_name_hash(other->type)) {
		if (memchr(expr->string, '!', expr->length))
			return fay_query_fail(query, FAY_E_USAGE, node->span,
					      "a %s is compared by its bare name, without `!`",
					      fay_type_name(other->type));
		return fay_expr_int(&checked->exprs, other->type, (int64_t)fay_name_hash(expr->string));
	}
	if (other->type == TYPE_INT && other->enumeration) {
		int64_t value;
		if (!fay_check_enumerator(checked, node, other->enumeration, expr->string, &value))
			return NULL;
		return fay_expr_int(&checked->exprs, TYPE_INT, value);
	}
	if (other->type == TYPE_STRING && expr->length >= FAY_COMM_SIZE)
		return fay_query_fail(query, FAY_E_USAGE, node->span,
				      "a thread's name has at most %d bytes, so it is never this",
				      FAY_COMM_SIZE - 1);
	return expr;
}

static bool is_number(const struct fay_expr *expr)
{
	return expr->type == TYPE_INT || expr->type == TYPE_REAL;
}

static const struct fay_expr *mismatch(struct fay_checked *checked, const struct fay_node *node,
				       const struct fay_expr *a, const struct fay_expr *b)
{
	const char *extra = "";
	if ((a->type == TYPE_BOOL && b->type == TYPE_INT) ||
	    (a->type == TYPE_INT && b->type == TYPE_BOOL))
		extra = "; is a bracket missing? Comparisons bind tighter than & | ^";
	if (is_number(a) && is_number(b))
		extra = "; a probe computes with integers, real numbers are for computing with aggregates";
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
			      "`%s` does not go with %s and %s%s", fay_operator_text(node->op),
			      fay_type_name(a->type), fay_type_name(b->type), extra);
}

/* Computing with real numbers: at the root only, that is, where an aggregate is among the operands. */
static bool is_real(const struct fay_expr *a, const struct fay_expr *b)
{
	return is_number(a) && is_number(b) && (a->type == TYPE_REAL || b->type == TYPE_REAL) &&
	       (a->has_aggregate || b->has_aggregate);
}

/* Two times differ by nanoseconds; nanoseconds are added to a time or taken from it. */
static bool is_time_arithmetic(enum fay_expr_op op, const struct fay_expr *a, const struct fay_expr *b, enum fay_type *type)
{
	bool difference = op == EXPR_SUB && a->type == TYPE_TIME && b->type == TYPE_TIME;
	bool moved = (op == EXPR_SUB || op == EXPR_ADD) && a->type == TYPE_TIME && b->type == TYPE_INT;
	*type = difference ? TYPE_INT : TYPE_TIME;
	return difference || moved;
}

static const struct fay_expr *check_binary(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *node)
{
	struct fay_exprs *exprs = &checked->exprs;
	size_t i = 0;
	while (binary_operators[i].token != node->op)
		i++;
	enum fay_expr_op op = binary_operators[i].op;
	const struct fay_expr *a = operand(checked, scope, node->a);
	const struct fay_expr *b = a ? operand(checked, scope, node->b) : NULL;
	if (b && (a = adapt(checked, node->a, a, b)))
		b = adapt(checked, node->b, b, a);
	if (!a || !b)
		return NULL;
	bool real = is_real(a, b);
	bool fine = a->type == b->type && a->type != TYPE_REAL;
	enum fay_type type = TYPE_BOOL;
	switch (binary_operators[i].group) {
	case ARITHMETIC:
		if (is_time_arithmetic(op, a, b, &type))
			return fay_expr_make(exprs, node->span, op, type, a, b, NULL);
		type = real ? TYPE_REAL : a->type;
		fine = fine && (a->type == TYPE_INT ||
				(a->type == TYPE_BOOL && (op == EXPR_BIT_AND || op == EXPR_BIT_OR ||
							  op == EXPR_BIT_XOR)));
		fine |= real && (op == EXPR_ADD || op == EXPR_SUB || op == EXPR_MUL || op == EXPR_DIV);
		break;
	case ORDER:
		fine = real || (fine && (a->type == TYPE_INT || a->type == TYPE_TIME));
		break;
	case LOGIC:
		fine = fine && a->type == TYPE_BOOL;
		break;
	case EQUALITY:
		fine = (fine || real) && a->type != TYPE_HISTOGRAM && a->type != TYPE_LIST && a->type != TYPE_STACK;
		break;
	}
	if (!fine)
		return mismatch(checked, node, a, b);
	return fay_expr_make(exprs, node->span, op, type, a, b, NULL);
}

static const struct fay_expr *check_unary(struct fay_checked *checked,
					  const struct fay_scope *scope,
					  const struct fay_node *node)
{
	const struct fay_expr *a = operand(checked, scope, node->a);
	if (!a)
		return NULL;
	if (a->type == TYPE_REAL && fay_expr_is_constant(a) && node->op == OPERATOR_SUB)
		return fay_expr_real(&checked->exprs, -a->real);
	enum fay_type needed = node->op == OPERATOR_NOT ? TYPE_BOOL : TYPE_INT;
	bool real = a->type == TYPE_REAL && a->has_aggregate && (node->op == OPERATOR_SUB || node->op == OPERATOR_ADD);
	if (a->type != needed && !real)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
				      "`%s` needs %s %s, but this is %s %s",
				      fay_operator_text(node->op), needed == TYPE_INT ? "an" : "a",
				      fay_type_name(needed), a->type == TYPE_INT ? "an" : "a",
				      fay_type_name(a->type));
	if (node->op == OPERATOR_ADD)
		return a;
	enum fay_expr_op op = node->op == OPERATOR_SUB	 ? EXPR_NEG
			      : node->op == OPERATOR_NOT ? EXPR_NOT
							 : EXPR_BIT_NOT;
	return fay_expr_make(&checked->exprs, node->span, op, a->type, a, NULL, NULL);
}

static const struct fay_expr *check_cond(struct fay_checked *checked,
					 const struct fay_scope *scope,
					 const struct fay_node *node)
{
	const struct fay_expr *a = operand(checked, scope, node->a);
	const struct fay_expr *b = a ? operand(checked, scope, node->b) : NULL;
	const struct fay_expr *c = b ? operand(checked, scope, node->c) : NULL;
	if (c && (b = adapt(checked, node->b, b, c)))
		c = adapt(checked, node->c, c, b);
	if (!b || !c)
		return NULL;
	if (a->type != TYPE_BOOL)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->a->span,
				      "the condition of `? :` must be a bool, but this is %s %s",
				      a->type == TYPE_INT ? "an" : "a", fay_type_name(a->type));
	bool real = is_real(b, c) || (a->has_aggregate && b->type == TYPE_REAL && c->type == TYPE_REAL);
	if ((b->type != c->type || b->type == TYPE_REAL || b->type == TYPE_HISTOGRAM || b->type == TYPE_LIST || b->type == TYPE_STACK) && !real)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
				      "the sides of `? :` must be of one type, not %s and %s",
				      fay_type_name(b->type), fay_type_name(c->type));
	return fay_expr_make(&checked->exprs, node->span, EXPR_COND, real ? TYPE_REAL : b->type, a, b, c);
}

static struct fay_value_node *check_new(struct fay_checked *checked,
					const struct fay_scope *scope, const struct fay_node *node)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_value_node *record = fay_check_value(checked, VALUE_RECORD);
	if (!record)
		return NULL;
	if (node->item_count > FAY_QUERY_MAX_COLUMNS)
		return fay_query_fail(query, FAY_E_LIMIT, node->span,
				      "a record may have %u members", FAY_QUERY_MAX_COLUMNS);
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

struct fay_value_node *fay_check_node(struct fay_checked *checked, const struct fay_scope *scope,
				      const struct fay_node *node)
{
	struct fay_exprs *exprs = &checked->exprs;
	switch (node->kind) {
	case NODE_INTEGER:
		return fay_check_scalar(checked,
					fay_expr_int(exprs, TYPE_INT, (int64_t)node->integer));
	case NODE_REAL:
		return fay_check_scalar(checked, fay_expr_real(exprs, node->real));
	case NODE_STRING:
		return fay_check_scalar(checked, fay_expr_string(exprs, node->name, node->length));
	case NODE_BOOL:
		return fay_check_scalar(checked,
					fay_expr_int(exprs, TYPE_BOOL, (int64_t)node->integer));
	case NODE_NAME:
		return check_name(checked, scope, node);
	case NODE_MEMBER:
		return check_member(checked, scope, node);
	case NODE_INDEX:
		return fay_check_index(checked, scope, node);
	case NODE_CALL:
		return check_call(checked, scope, node);
	case NODE_UNARY:
		return fay_check_scalar(checked, check_unary(checked, scope, node));
	case NODE_BINARY:
		return fay_check_scalar(checked, check_binary(checked, scope, node));
	case NODE_COND:
		return fay_check_scalar(checked, check_cond(checked, scope, node));
	case NODE_NEW:
		return check_new(checked, scope, node);
	case NODE_QUERY:
		return fay_check_comprehension(checked, scope, node);
	case NODE_LAMBDA:
		break;
	}
	return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->span,
			      "a lambda can only be given to a method such as `Where`");
}
