/* SPDX-License-Identifier: MIT */
/*
 * Sources in the kernel: system calls by name, tracepoints with their arguments by name and type.
 * Names and types come from the kernel's own description (BTF), so a query is checked against the
 * kernel that it will run on.
 */
#include "sources.h"

#include <bpf/btf.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "fay/bpf.h"

#define NAMES_MAX 4096u

/* --- patterns
 * -------------------------------------------------------------------------------------------------
 * */

/* The tracepoints of single system calls exist in tracefs only. */
static const char *hint_of(struct fay_query *query, const char *name, const char *const *names,
			   size_t count)
{
	static const char *const prefixes[] = { "sys_enter_", "sys_exit_" };
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return fay_query_format(query, "; that is `cluster.Syscall(\"%s\")` here",
						name + strlen(prefixes[i]))
				       ?: "";
	return fay_query_did_you_mean(query, name, names, count);
}

/* Names that match, into `kernel`; what is near to a single one that does not exist, in the
 * message. */
static bool add_matches(struct fay_checked *checked, const struct fay_node *at, const char *glob,
			const char *const *names, size_t count, const char *what)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_kernel_source *kernel = checked->kernel;
	const uint32_t max = checked->kind == SOURCE_SYSCALL
				     ? sizeof(kernel->points) / sizeof(kernel->points[0])
				     : FAY_KERNEL_POINTS_MAX;
	for (size_t i = 0; i < count; i++) {
		if (fnmatch(glob, names[i], 0))
			continue;
		if (kernel->count == max)
			return fay_query_fail(query, FAY_E_LIMIT, at->span,
					      "more than %u %ss match", max, what) != NULL;
		const char *copy = fay_query_copy(query, names[i], strlen(names[i]));
		if (!copy)
			return false;
		kernel->points[kernel->count++] = (struct fay_kernel_point){
			copy, checked->kind == SOURCE_SYSCALL ? fay_syscalls(&count)[i].number : 0
		};
	}
	if (kernel->count)
		return true;
	if (strpbrk(glob, "*?["))
		return fay_query_fail(query, FAY_E_REFUSED, at->span, "no %s matches `%s`", what,
				      glob) != NULL;
	return fay_query_fail(query, FAY_E_USAGE, at->span, "unknown %s `%s`%s", what, glob,
			      hint_of(query, glob, names, count)) != NULL;
}

static bool find_syscalls(struct fay_checked *checked, const struct fay_node *at)
{
	struct fay_query *query = checked->exprs.query;
	size_t count;
	const struct fay_syscall *syscalls = fay_syscalls(&count);
	const char **names = fay_query_alloc(query, count * sizeof(*names));
	for (size_t i = 0; names && i < count; i++)
		names[i] = syscalls[i].name;
	return names && add_matches(checked, at, at->name, names, count, "system call") &&
	       fay_check_name_arguments(checked);
}

static const struct btf *kernel_types(struct fay_checked *checked, struct fay_span span)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_error error;
	if (!query->btf && fay_btf_open(getenv("FAY_BTF"), &query->btf, &error))
		return fay_query_fail(query, error.code, span, "%s", error.message);
	return query->btf;
}

/* What one tracepoint hands over; events of several have nothing in common but what all events
 * have. */
static bool find_arguments(struct fay_checked *checked, const struct fay_node *at)
{
	struct fay_kernel_source *kernel = checked->kernel;
	struct fay_btf_tracepoint tracepoint;
	if (kernel->count > 1)
		return true;
	if (!fay_btf_tracepoint(checked->exprs.query->btf, kernel->points[0].name, &tracepoint))
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, at->span,
				      "the kernel's types do not describe tracepoint `%s`",
				      kernel->points[0].name) != NULL;
	kernel->argument_count = tracepoint.argument_count;
	for (uint32_t i = 0; i < tracepoint.argument_count; i++) {
		kernel->arguments[i].name = tracepoint.arguments[i].name;
		kernel->arguments[i].type = tracepoint.arguments[i].type;
	}
	return true;
}

/* "system:name" or "name". The kernel's types do not tell which system a tracepoint belongs to, so
 * what stands before the colon is for people. */
static bool find_tracepoints(struct fay_checked *checked, const struct fay_node *at)
{
	const char *colon = strchr(at->name, ':'), *glob = colon ? colon + 1 : at->name;
	const struct btf *btf = kernel_types(checked, at->span);
	if (!btf)
		return false;
	const char **names = malloc(NAMES_MAX * sizeof(*names));
	if (!names)
		return fay_query_fail(checked->exprs.query, FAY_E_LIMIT, at->span,
				      "out of memory") != NULL;
	size_t count = fay_btf_tracepoints(btf, names, NAMES_MAX);
	bool found = add_matches(checked, at, glob, names, count < NAMES_MAX ? count : NAMES_MAX,
				 "tracepoint");
	free(names);
	return found && find_arguments(checked, at);
}

const char *fay_check_kernel_pattern(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	bool syscall = checked->kind == SOURCE_SYSCALL;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	if (!at || at->kind != NODE_STRING)
		return fay_query_fail(query, FAY_E_USAGE, at ? at->span : call->span,
				      "`%s` takes one string such as \"%s\"", call->a->name,
				      syscall ? "read" : "sched:sched_switch");
	if (!at->length || at->length >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, at->length ? FAY_E_LIMIT : FAY_E_USAGE, at->span,
				      "a pattern has 1 to %u bytes", FAY_IMAGE_MAX_STRING - 1);
	checked->domain = DOMAIN_KERNEL;
	checked->kernel = fay_query_alloc(query, sizeof(*checked->kernel));
	if (!checked->kernel ||
	    !(syscall ? find_syscalls(checked, at) : find_tracepoints(checked, at)))
		return NULL;
	return fay_query_format(query, "kernel!%s%s", syscall ? "syscall:" : "", at->name);
}

bool fay_check_kernel_name(struct fay_checked *checked, const struct fay_node *at,
			   enum fay_source kind, const struct fay_kernel_source *kernel,
			   const char *name)
{
	struct fay_query *query = checked->exprs.query;
	const char *names[sizeof(kernel->points) / sizeof(kernel->points[0])];
	const char *colon = strchr(name, ':');
	struct fay_btf_tracepoint tracepoint;
	if (!kernel || !kernel->count || !(kind & (SOURCE_SYSCALL | SOURCE_TRACEPOINT)))
		return true;
	/* one query may be asked of several sources: what there is elsewhere is no mistake */
	if (kind == SOURCE_SYSCALL ? fay_syscall_arguments(name) != NULL
				   : fay_btf_tracepoint(query->btf, name, &tracepoint))
		return true;
	for (uint32_t i = 0; i < kernel->count; i++) {
		names[i] = kernel->points[i].name;
		if (!strcmp(names[i], name))
			return true;
	}
	return fay_query_fail(query, FAY_E_USAGE, at->span, "the source has no %s `%s`%s",
			      kind == SOURCE_SYSCALL ? "system call" : "tracepoint", name,
			      fay_query_did_you_mean(query, colon ? colon + 1 : name, names,
						     kernel->count)) != NULL;
}

bool fay_check_kernel_function(struct fay_checked *checked, const char *pattern)
{
	struct fay_query *query = checked->exprs.query;
	struct fay_btf_tracepoint function;
	const char *name = strchr(pattern, '!') + 1;
	struct fay_kernel_source *kernel = checked->kernel =
		fay_query_alloc(query, sizeof(*kernel));
	if (!kernel)
		return false;
	if (checked->kind != SOURCE_ENTRY || strpbrk(name, "*?[") ||
	    (!query->btf && fay_btf_open(getenv("FAY_BTF"), &query->btf, NULL)) ||
	    !fay_btf_function(query->btf, name, &function))
		return true; /* Arg(n) is known all the same */
	for (uint32_t i = 0; i < function.argument_count && i < 6; i++) {
		kernel->arguments[i].name = function.arguments[i].name;
		kernel->arguments[i].type = function.arguments[i].type;
		kernel->argument_count = i + 1;
		uint32_t size = fay_btf_size(query->btf, function.arguments[i].type);
		if (!size || size > 8)
			break; /* what follows is not in the next register */
	}
	return true;
}

/* --- arguments
 * -------------------------------------------------------------------------------------------------
 * */

static struct fay_types *kernel_types_of(struct fay_checked *checked)
{
	checked->kernel->types.kernel = checked->exprs.query->btf;
	return &checked->kernel->types;
}

struct fay_value_node *fay_check_kernel_argument(struct fay_checked *checked,
						 const struct fay_node *node)
{
	const struct fay_kernel_source *kernel = checked->kernel;
	if (checked->kind == SOURCE_SYSCALL)
		return fay_check_syscall_argument(checked, node);
	if (checked->kind == SOURCE_TRACEPOINT && kernel->count > 1)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, node->name_span,
				      "unknown field `%s`: events of several tracepoints (%u "
				      "match) have only what all events have; name one tracepoint",
				      node->name, kernel->count);
	for (uint32_t i = 0; i < kernel->argument_count; i++) {
		struct fay_place place = { .types = kernel_types_of(checked),
					   .offset = i,
					   .name = kernel->arguments[i].name };
		if (strcmp(kernel->arguments[i].name, node->name) == 0)
			return fay_check_typed_value(checked, node, &place,
						     kernel->arguments[i].type);
	}
	return NULL;
}

bool fay_check_kernel_is_plain(const struct fay_checked *checked, uint32_t index)
{
	const struct btf *btf = checked->exprs.query->btf;
	const struct btf_type *type =
		btf__type_by_id(btf, fay_btf_strip(btf, checked->kernel->arguments[index].type));
	switch (btf_kind(type)) {
	case BTF_KIND_INT: return type->size <= 8;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64: return true;
	case BTF_KIND_PTR: /* to characters: a string */
		type = btf__type_by_id(btf, fay_btf_strip(btf, type->type));
		return btf_is_int(type) && type->size == 1;
	default: return false;
	}
}

struct fay_value_node *fay_check_kernel_arg(struct fay_checked *checked, const struct fay_node *at,
					    uint32_t index)
{
	const struct fay_kernel_source *kernel = checked->kernel;
	if (index >= kernel->argument_count)
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, at->span,
				      "there is no such argument: `%s` has %u",
				      kernel->points[0].name, kernel->argument_count);
	struct fay_place place = { .types = kernel_types_of(checked),
				   .offset = index,
				   .name = kernel->arguments[index].name };
	struct fay_value_node *value =
		fay_check_typed_value(checked, at, &place, kernel->arguments[index].type);
	if (value && (value->kind != VALUE_SCALAR || value->expr->type == TYPE_STRING))
		return fay_query_fail(checked->exprs.query, FAY_E_USAGE, at->span,
				      "argument %u is not a number; use its name, `%s`", index,
				      kernel->arguments[index].name);
	return value;
}
