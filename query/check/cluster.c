/* SPDX-License-Identifier: MIT */
/* cluster.Function(...) and its like: which calls, markers or events of the kernel a query is
 * about. */
#include "check_private.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Other tracers write module:function; who does so here is shown the same name with a `!`. */
static void *fail_without_module(struct fay_query *query, const struct fay_node *at,
				 const char *pattern)
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

bool fay_check_has_bang(const char *name)
{
	const char *bang = strchr(name, '!');
	bool is_operator = bang && bang - name >= 8 && !memcmp(bang - 8, "operator", 8);
	return bang && (!is_operator || strchr(bang + 1, '!'));
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
	const char *module = checked->domain == DOMAIN_KERNEL ? "kernel"
			     : second                         ? first->value->name
							      : NULL;
	const char *pattern =
		module ? fay_query_format(query, "%s!%s", module, last->name) : last->name;
	if (!pattern)
		return NULL;
	const char *bang = strchr(pattern, '!');
	if (!bang)
		return fail_without_module(query, last, pattern);
	if (bang == pattern || !bang[1] || fay_check_has_bang(bang + 1))
		return fay_query_fail(query, FAY_E_USAGE, last->span,
				      "a function is given as \"module!function\", with one `!`");
	if (checked->domain != DOMAIN_KERNEL && !strncmp(pattern, "kernel!", strlen("kernel!")))
		return fay_query_fail(query, FAY_E_USAGE, last->span,
				      "functions of the kernel are `cluster.%s(kernel, \"%s\")`",
				      call->a->name, bang + 1);
	if (strlen(pattern) >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, FAY_E_LIMIT, last->span,
				      "a function's pattern may have at most %u bytes",
				      FAY_IMAGE_MAX_STRING - 1);
	/* as the source has it, `shop::Cart::operator long`, `add(unsigned int)` */
	bool of_source = strstr(bang, "::") || strchr(bang, '(');
	for (const char *c = pattern; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f ||
		    (*c == ' ' && (!of_source || c <= bang + 1 || !c[1])))
			return fay_query_fail(query, FAY_E_USAGE, last->span,
					      "a function's pattern cannot contain blanks");
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
	if (!bang || bang == pattern || strchr(bang + 1, '!') || !colon || colon == bang + 1 ||
	    !colon[1])
		return fay_query_fail(
			query, FAY_E_USAGE, at->span,
			"a USDT probe is given as \"module!provider:name\", for example "
			"\"postgres!postgresql:query__start\"; `*` stands for any part");
	if (at->length >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, FAY_E_LIMIT, at->span,
				      "a USDT probe's pattern may have at most %u bytes",
				      FAY_IMAGE_MAX_STRING - 1);
	for (const char *c = pattern; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return fay_query_fail(query, FAY_E_USAGE, at->span,
					      "a USDT probe's pattern cannot contain blanks");
	return pattern;
}

/* "module!file.c:123" in one string; NULL on error. */
static const char *check_line(struct fay_checked *checked, const struct fay_node *call)
{
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	if (!at || at->kind != NODE_STRING)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, at ? at->span : call->span,
				      "`Line` takes one string such as \"shop!cart.c:123\"");
	return fay_check_line_pattern(checked, at);
}

/* cluster.Timer(period) */
static const char *check_timer(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	const struct fay_expr *period =
		at ? fay_check_typed(checked, NULL, at, TYPE_INT, "a period") : NULL;
	if (!at)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`Timer` takes a period such as 10ms");
	if (!period)
		return NULL;
	if (!fay_expr_is_constant(period) || period->value < FAY_BPF_PERIOD_LEAST ||
	    period->value > (int64_t)FAY_BPF_PERIOD_MOST)
		return fay_query_fail(query, FAY_E_USAGE, at->span,
				      "a timer's period is a constant from 100us to 1h");
	checked->domain = DOMAIN_KERNEL;
	checked->kernel = fay_query_alloc(query, sizeof(*checked->kernel));
	if (!checked->kernel)
		return NULL;
	checked->kernel->period = (uint64_t)period->value;
	checked->kernel->points[checked->kernel->count++].name = "timer";
	return "kernel!timer";
}

/* No source has this name. */
static void *fail_unknown(struct fay_query *query, const struct fay_node *call)
{
	static const char *const names[] = { "Function",   "Return", "Usdt", "Syscall",
					     "Tracepoint", "Timer",  "Line" };
	return fay_query_fail(query, FAY_E_USAGE, call->a->name_span,
			      "the cluster has no method `%s`%s", call->a->name,
			      fay_query_did_you_mean(query, call->a->name, names, COUNT_OF(names)));
}

struct fay_value_node *fay_check_cluster_method(struct fay_checked *checked,
						const struct fay_scope *scope,
						const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	enum fay_source kind = fay_check_source_kind(call->a->name);
	if (kind == SOURCE_NONE)
		return fail_unknown(query, call);
	if (checked->pattern)
		return fay_query_fail(query, FAY_E_REFUSED, call->span,
				      "a second source belongs in a join: `join b in "
				      "cluster.%s(...) on a.tid equals b.tid within 5ms`",
				      call->a->name);
	checked->kind = kind;
	bool marker = checked->kind == SOURCE_MARKER, point = fay_source_is_bpf(checked->kind),
	     line = checked->kind == SOURCE_LINE;
	if (!marker && !point && !line && call->item_count == 2 &&
	    call->items->value->kind == NODE_NAME) {
		struct fay_value_node *where = fay_check_node(checked, scope, call->items->value);
		if (!where)
			return NULL;
		checked->domain = where->kind == VALUE_KERNEL ? DOMAIN_KERNEL : DOMAIN_USER;
	}
	checked->pattern = marker                          ? check_marker_pattern(checked, call)
			   : checked->kind == SOURCE_TIMER ? check_timer(checked, call)
			   : line                          ? check_line(checked, call)
			   : point                         ? fay_check_kernel_pattern(checked, call)
							   : check_pattern(checked, call);
	checked->source = call->span;
	if (checked->pattern && checked->domain == DOMAIN_KERNEL && !point &&
	    !fay_check_kernel_function(checked, checked->pattern))
		return NULL;
	struct fay_value_node *sequence =
		checked->pattern ? fay_check_value(checked, VALUE_SEQUENCE) : NULL;
	if (sequence)
		sequence->element = fay_check_value(checked, VALUE_EVENT);
	return sequence && sequence->element ? sequence : NULL;
}
