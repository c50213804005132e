/* SPDX-License-Identifier: MIT */
/*
 * Modules that a traced program loads and unloads. The dynamic linker calls a function for
 * debuggers, which does nothing, when it has changed what is mapped; its address is in struct
 * r_debug (link.h), to which DT_DEBUG of the program's dynamic section leads. Hooked, it makes the
 * program wait until the loader has answered: the runtime's part is dispatcher/runtime/modules.c,
 * the reasons are in docs/decisions/0015.
 *
 * What is read of the process is believed as far as it names the beginning of a function with a
 * symbol, which is judged and patched like any other.
 */
#include "plan_private.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/names/target.h"
#include "loader/process/process.h"

#define SEGMENTS_MAX 256u
#define ENTRIES_MAX 1024u /* of the dynamic section */

static bool read_there(int memory, uint64_t address, void *to, size_t size)
{
	return pread(memory, to, size, (off_t)address) == (ssize_t)size;
}

/* The address of the program's dynamic section; 0: it has none. */
static uint64_t find_dynamic(pid_t pid, int memory)
{
	static const uint64_t types[] = { AT_PHDR, AT_PHNUM };
	uint64_t values[2], headers, count, bias = 0, dynamic = 0;
	Elf64_Phdr list[SEGMENTS_MAX];

	fay_process_auxiliary(pid, types, values, 2);
	headers = values[0];
	count = values[1];
	if (count > SEGMENTS_MAX)
		count = SEGMENTS_MAX;
	if (!headers || !read_there(memory, headers, list, count * sizeof(*list)))
		return 0;
	for (uint64_t i = 0; i < count; i++) {
		if (list[i].p_type == PT_PHDR)
			bias = headers - list[i].p_vaddr;
		else if (list[i].p_type == PT_DYNAMIC)
			dynamic = list[i].p_vaddr;
	}
	return dynamic ? dynamic + bias : 0;
}

/* What the program's DT_DEBUG says; 0: it has none, or the dynamic linker has not filled it. */
static uint64_t find_rendezvous(int memory, uint64_t dynamic)
{
	Elf64_Dyn list[ENTRIES_MAX];
	/* the section may end where the memory does */
	ssize_t got = pread(memory, list, sizeof(list), (off_t)dynamic);

	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(*list); i++) {
		if (list[i].d_tag == DT_NULL)
			return 0;
		if (list[i].d_tag == DT_DEBUG)
			return list[i].d_un.d_ptr;
	}
	return 0;
}

/* The function that begins there, by its name. */
static bool find_function(struct fay_target *target, uint64_t address,
			  struct fay_function *function)
{
	struct fay_function_list list = { 0 };
	struct fay_code_place place;
	char pattern[600];
	bool found = false;

	if (!fay_target_describe(target, address, &place) || !place.name || place.offset)
		return false;
	snprintf(pattern, sizeof(pattern), "%s!%s", place.module, place.name);
	if (fay_target_find(target, pattern, &list, NULL))
		return false;
	for (size_t i = 0; i < list.count && !found; i++)
		if (list.items[i].address == address && !list.items[i].unnamed) {
			*function = list.items[i];
			found = true;
		}
	fay_function_list_deinit(&list);
	return found;
}

/* The reason why it cannot be hooked; NULL: `function` is the one. */
static const char *locate(struct fay_plan *plan, int memory, struct fay_function *function)
{
	uint64_t dynamic = find_dynamic(plan->pid, memory), rendezvous;
	struct r_debug debug;

	if (!dynamic)
		return "the program has no dynamic section";
	rendezvous = find_rendezvous(memory, dynamic);
	if (!rendezvous || !read_there(memory, rendezvous, &debug, sizeof(debug)) ||
	    debug.r_version < 1)
		return "its dynamic section does not lead to the dynamic linker's list of modules";
	if (!find_function(plan->target, debug.r_brk, function))
		return "the dynamic linker's function for debuggers has no symbol";
	plan->rendezvous = rendezvous;
	return NULL;
}

bool fay_rendezvous_find(struct fay_plan *plan, struct fay_function *function)
{
	const char *reason = "its memory cannot be read";
	int memory = fay_process_memory(plan->pid, O_RDONLY);

	if (memory >= 0) {
		reason = locate(plan, memory, function);
		close(memory);
	}
	if (reason)
		snprintf(plan->unhooked, sizeof(plan->unhooked), "%s", reason);
	return !reason;
}

int fay_rendezvous_resolve(struct fay_plan *plan, size_t *capacity, struct fay_error *error)
{
	struct fay_function function;

	if (fay_rendezvous_find(plan, &function) &&
	    fay_point_append(plan, capacity, &function, NULL, FAY_HOOK_MODULES))
		return fay_points_full(plan, error);
	return 0;
}

bool fay_rendezvous_hooked(const struct fay_plan *plan)
{
	for (size_t i = 0; i < plan->point_count; i++)
		if (plan->points[i].hook == FAY_HOOK_MODULES)
			return plan->points[i].usable;
	return false;
}

bool fay_rendezvous_unsettled(const struct fay_plan *plan, const struct fay_point *point,
			      char reason[FAY_REASON_MAX])
{
	const struct fay_module *module =
		plan->options.loading ? fay_target_module_at(plan->target, point->function.address)
				      : NULL;

	if (!module || !module->object || !module->object->text_relocations)
		return false;
	return snprintf(reason, FAY_REASON_MAX,
			"is in a module that was loaded later and has text relocations, which may "
			"not be applied yet") > 0;
}
