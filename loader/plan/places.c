/* SPDX-License-Identifier: MIT */
/* From a probe's pattern to places in the process. */
#include "plan_private.h"

#include <stdio.h>
#include <string.h>

#include "loader/names/target.h"

/*
 * Thread begin and end are entries of functions of glibc's that each thread calls first, before the
 * program's own, and last, after its destructors. A static program has them itself, unless it was
 * stripped.
 */
static int find_thread_function(struct fay_target *target, uint32_t kind,
				struct fay_function_list *list, struct fay_error *error)
{
	const char *name =
		kind == FAY_PROBE_THREAD_BEGIN ? "__ctype_init" : "__nptl_deallocate_tsd";
	char pattern[600];

	snprintf(pattern, sizeof(pattern), "libc!%s", name);
	if (!fay_target_find_symbols(target, pattern, list, NULL))
		return 0;
	for (size_t i = 0; i < target->module_count; i++) {
		snprintf(pattern, sizeof(pattern), "%s!%s", target->modules[i].name, name);
		if (target->modules[i].main &&
		    !fay_target_find_symbols(target, pattern, list, NULL))
			return 0;
	}
	return fay_error_set(
		error, FAY_E_REFUSED,
		"thread begin and end probes need glibc's %s, which is not found in this process; "
		"Debian's package libc6-dbg has the symbols that the C library itself lacks",
		name);
}

/* Places that debug information tells, "module!@...", "@...": inside functions, or where these
 * begin. */
static bool is_told(const struct fay_probe_facts *facts)
{
	const char *bang = strchr(facts->pattern, '!');

	return (facts->kind == FAY_PROBE_OFFSET || facts->kind == FAY_PROBE_ENTRY) &&
	       (bang ? bang[1] : *facts->pattern) == '@';
}

/* What is told as a beginning is one if a symbol says so, too, and is judged as any. */
static int find_told(struct fay_target *target, const struct fay_probe_facts *facts,
		     struct fay_function_list *list, struct fay_error *error)
{
	int code = fay_target_find_markers(target, facts->pattern, list, error);
	size_t kept = 0;

	if (code || facts->kind != FAY_PROBE_ENTRY)
		return code;
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].address != list->items[i].start)
			continue;
		list->items[kept] = list->items[i];
		list->items[kept++].marker = NULL;
	}
	list->count = kept;
	return 0;
}

int fay_places_find(struct fay_plan *plan, uint32_t probe, struct fay_function_list *list,
		    struct fay_error *error)
{
	const struct fay_probe_facts *facts = &plan->verdict->probes[probe];
	struct fay_target *target = plan->target;
	bool thread = facts->kind == FAY_PROBE_THREAD_BEGIN || facts->kind == FAY_PROBE_THREAD_END;
	int code;

	target->only_new = plan->options.beside_count > 0;
	if (thread)
		code = target->only_new
			       ? fay_error_set(error, FAY_E_USAGE,
					       "earlier sessions hold the threads' functions")
			       : find_thread_function(target, facts->kind, list, error);
	else if (is_told(facts))
		code = find_told(target, facts, list, error);
	else if (facts->kind == FAY_PROBE_MARKER)
		code = fay_target_find_markers(target, facts->pattern, list, error);
	else
		code = fay_target_find(target, facts->pattern, list, error);
	target->only_new = false;
	return code;
}
