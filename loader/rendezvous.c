/* SPDX-License-Identifier: MIT */
/*
 * Modules that a traced program loads and unloads. The dynamic linker calls a function for
 * debuggers, which does nothing, when it has changed what is mapped; its address is in struct
 * r_debug (link.h), to which DT_DEBUG of the program's dynamic section leads. Hooked, it makes the
 * program wait until the loader has answered: the runtime's part is dispatcher/user/modules.c, the
 * reasons are in docs/decisions/0015.
 *
 * What is read of the process is believed as far as it names the beginning of a function with a
 * symbol, which is judged and patched like any other.
 */
#include "session.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"
#include "target.h"
#include "thread.h"

#define SEGMENTS_MAX 256u
#define ENTRIES_MAX 1024u /* of the dynamic section */

static bool read_there(int memory, uint64_t address, void *to, size_t size)
{
	return pread(memory, to, size, (off_t)address) == (ssize_t)size;
}

/* The address of the program's dynamic section; 0: it has none. */
static uint64_t find_dynamic(pid_t pid, int memory)
{
	bool readable;
	uint64_t headers = fay_process_auxiliary(pid, AT_PHDR, &readable),
		 count = fay_process_auxiliary(pid, AT_PHNUM, &readable);
	uint64_t bias = 0, dynamic = 0;

	for (uint64_t i = 0; headers && i < count && i < SEGMENTS_MAX; i++) {
		Elf64_Phdr header;

		if (!read_there(memory, headers + i * sizeof(header), &header, sizeof(header)))
			return 0;
		if (header.p_type == PT_PHDR)
			bias = headers - header.p_vaddr;
		else if (header.p_type == PT_DYNAMIC)
			dynamic = header.p_vaddr;
	}
	return dynamic ? dynamic + bias : 0;
}

/* What the program's DT_DEBUG says; 0: it has none, or the dynamic linker has not filled it. */
static uint64_t find_rendezvous(int memory, uint64_t dynamic)
{
	Elf64_Dyn entry = { 0 };

	for (unsigned i = 0; i < ENTRIES_MAX; i++) {
		if (!read_there(memory, dynamic + i * sizeof(entry), &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			return 0;
		if (entry.d_tag == DT_DEBUG)
			return entry.d_un.d_ptr;
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
static const char *locate(struct fay_session *session, int memory, struct fay_function *function)
{
	uint64_t dynamic = find_dynamic(session->pid, memory), rendezvous;
	struct r_debug debug;

	if (!dynamic)
		return "the program has no dynamic section";
	rendezvous = find_rendezvous(memory, dynamic);
	if (!rendezvous || !read_there(memory, rendezvous, &debug, sizeof(debug)) ||
	    debug.r_version < 1)
		return "its dynamic section does not lead to the dynamic linker's list of modules";
	if (!find_function(session->target, debug.r_brk, function))
		return "the dynamic linker's function for debuggers has no symbol";
	session->rendezvous = rendezvous;
	return NULL;
}

int fay_rendezvous_resolve(struct fay_session *session, size_t *capacity, struct fay_error *error)
{
	const char *reason = "its memory cannot be read";
	struct fay_function function;
	int memory = fay_process_memory(session->pid, O_RDONLY);

	if (memory >= 0) {
		reason = locate(session, memory, &function);
		close(memory);
	}
	if (reason)
		snprintf(session->unhooked, sizeof(session->unhooked), "%s", reason);
	else if (fay_point_append(session, capacity, &function, NULL, FAY_HOOK_MODULES))
		return fay_points_full(session, error);
	return 0;
}

bool fay_rendezvous_hooked(const struct fay_session *session)
{
	for (size_t i = 0; i < session->point_count; i++)
		if (session->points[i].hook == FAY_HOOK_MODULES)
			return session->points[i].usable;
	return false;
}

bool fay_rendezvous_unsettled(const struct fay_session *session, const struct fay_point *point,
			      char reason[FAY_REASON_MAX])
{
	const struct fay_module *module =
		session->options.loading
			? fay_target_module_at(session->target, point->function.address)
			: NULL;

	if (!module || !module->object || !module->object->text_relocations)
		return false;
	return snprintf(reason, FAY_REASON_MAX,
			"is in a module that was loaded later and has text relocations, which may "
			"not be applied yet") > 0;
}

const char *fay_session_unhooked(const struct fay_session *session)
{
	return *session->unhooked ? session->unhooked : NULL;
}

bool fay_session_modules_asked(struct fay_session *session, uint32_t *number)
{
	struct fay_shm_control *control = session->shm;

	*number = control ? __atomic_load_n(&control->modules_asked, __ATOMIC_ACQUIRE) : 0;
	if (!control || !session->geometry.modules_follow)
		return false;
	if (__atomic_load_n(&control->modules_answered, __ATOMIC_RELAXED) == *number) {
		/* A thread whose time was up just when it was answered may have cleared it after
		 * the answer. */
		if (!__atomic_load_n(&control->modules_follow, __ATOMIC_RELAXED))
			__atomic_store_n(&control->modules_follow, 1, __ATOMIC_RELEASE);
		return false;
	}
	__atomic_store_n(&control->modules_seen, *number, __ATOMIC_RELEASE);
	return true;
}

void fay_session_modules_answer(struct fay_session *session, uint32_t number)
{
	struct fay_shm_control *control = session->shm;

	__atomic_store_n(&control->modules_follow, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&control->modules_answered, number, __ATOMIC_RELEASE);
	syscall(SYS_futex, &control->modules_answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t fay_session_modules_late(const struct fay_session *session)
{
	return session->shm ? __atomic_load_n(&session->shm->modules_late, __ATOMIC_RELAXED) : 0;
}

void fay_rendezvous_release(struct fay_session *session)
{
	if (!session->shm)
		return;
	fay_session_modules_answer(session,
				   __atomic_load_n(&session->shm->modules_asked, __ATOMIC_ACQUIRE));
	session->geometry.modules_follow = 0; /* from now on nobody is asked */
	__atomic_store_n(&session->shm->modules_follow, 0, __ATOMIC_RELEASE);
}

void fay_rendezvous_release_other(pid_t pid, uint64_t id)
{
	const uint32_t follow = 0;
	struct fay_zones zones = { 0 };
	struct fay_maps maps;
	int memory;

	if (fay_maps_read(pid, &maps, NULL))
		return;
	memory = fay_process_memory(pid, O_RDWR);
	if (memory >= 0 && !fay_zones_read(&maps, memory, &zones, NULL)) {
		for (size_t i = 0; i < zones.count; i++)
			if (zones.items[i].header.session == id && zones.items[i].header.shm_size &&
			    pwrite(memory, &follow, sizeof(follow),
				   (off_t)(zones.items[i].header.shm +
					   offsetof(struct fay_shm_control, modules_follow))) < 0)
				break; /* whoever waits there does so to the end of his time */
		fay_zones_deinit(&zones);
	}
	if (memory >= 0)
		close(memory);
	fay_maps_deinit(&maps);
}
