/* SPDX-License-Identifier: MIT */
/* Which traps there are, which program each runs, and in which processes they are. */
#include "traps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define OTHER_FILES 1024u /* that fay may have open */

static bool is_same_program(const struct fay_trap *a, const struct fay_trap *b)
{
	return fay_trap_of_same(a, b) && a->kind == b->kind && a->kept == b->kept &&
	       a->condition == b->condition && a->left == b->left &&
	       !memcmp(a->parts, b->parts, sizeof(a->parts)) &&
	       !memcmp(a->operands, b->operands, sizeof(a->operands));
}

/* The file, open for as long as the trace lasts; -1: it cannot be. */
static int keep_file(struct fay_traps *traps, const struct fay_trap *trap)
{
	for (size_t i = 0; i < traps->file_count; i++)
		if (traps->files[i].device == trap->device && traps->files[i].inode == trap->inode)
			return traps->files[i].fd;
	struct fay_trap_file *grown =
		realloc(traps->files, (traps->file_count + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	traps->files = grown;
	int fd = fcntl(trap->file, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		grown[traps->file_count++] =
			(struct fay_trap_file){ trap->device, trap->inode, fd };
	return fd;
}

static bool add_program(struct fay_traps *traps, const struct fay_trap *trap, uint32_t number)
{
	struct fay_trap_program *program = &traps->programs[traps->program_count];
	char *name = strdup(trap->function.name), *module = strdup(trap->function.module);
	if (!name || !module || traps->program_count == FAY_TRAP_PROGRAMS_MAX) {
		free(name);
		free(module);
		return false;
	}
	*program = (struct fay_trap_program){ .trap = *trap,
					      .object = traps->object_count,
					      .number = number };
	program->trap.function.name = name;
	program->trap.function.module = module;
	traps->program_count++;
	return true;
}

static void drop_programs(struct fay_traps *traps, uint32_t count)
{
	while (traps->program_count > count) {
		struct fay_trap *trap = &traps->programs[--traps->program_count].trap;
		free((char *)trap->function.name);
		free((char *)trap->function.module);
	}
}

/* The object's program for a trap; one is added, if the object is not made yet. */
static bool find_program(struct fay_traps *traps, uint32_t object, const struct fay_trap *trap,
			 uint32_t *found)
{
	uint32_t number = 0;
	for (uint32_t i = 0; i < traps->program_count; i++) {
		if (traps->programs[i].object != object)
			continue;
		number++;
		*found = i;
		if (is_same_program(&traps->programs[i].trap, trap))
			return true;
	}
	*found = traps->program_count;
	return object == traps->object_count && object < FAY_TRAP_OBJECTS_MAX &&
	       add_program(traps, trap, number);
}

static bool is_given_up(const struct fay_traps *traps, const struct fay_trap *trap)
{
	for (uint32_t i = 0; i < traps->program_count; i++)
		if (traps->programs[i].given_up && fay_trap_of_same(&traps->programs[i].trap, trap))
			return true;
	return false;
}

/* Those from `first` on that the session has for one point: the first one of the next. */
static size_t point_end(const struct fay_session *session, size_t first)
{
	size_t i = first, count = fay_session_trap_count(session);
	while (i < count &&
	       fay_session_trap(session, i)->skipped == fay_session_trap(session, first)->skipped)
		i++;
	return i;
}

/* All of one point, or none of them, by programs of one object: these share what they keep. */
static bool take_by(struct fay_traps *traps, uint32_t object, const struct fay_session *session,
		    pid_t pid, size_t first, size_t end)
{
	uint32_t programs = traps->program_count;
	bool fits = traps->count + (end - first) <= FAY_TRAPS_MAX;
	traps->points++;
	for (size_t i = first; i < end && fits; i++) {
		struct fay_trap_item *item = &traps->items[traps->count + (i - first)];
		*item = (struct fay_trap_item){ .session = session,
						.trap = *fay_session_trap(session, i),
						.pid = pid,
						.point = traps->points };
		item->trap.file = keep_file(traps, &item->trap);
		fits = item->trap.file >= 0 &&
		       find_program(traps, object, &item->trap, &item->program);
		if (fits)
			item->trap.function = traps->programs[item->program].trap.function;
	}
	if (fits)
		traps->count += end - first;
	else
		drop_programs(traps, programs);
	return fits;
}

static bool make_tables(struct fay_traps *traps)
{
	if (!traps->items)
		traps->items = calloc(FAY_TRAPS_MAX, sizeof(*traps->items));
	if (!traps->programs)
		traps->programs = calloc(FAY_TRAP_PROGRAMS_MAX, sizeof(*traps->programs));
	if (!traps->processes)
		traps->processes = calloc(FAY_TRAPS_MAX, sizeof(*traps->processes));
	return traps->items && traps->programs && traps->processes;
}

/* Each trap, and each program, may be an open file. */
static void allow_files(size_t count)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= count + OTHER_FILES)
		return;
	limit.rlim_cur =
		count + OTHER_FILES < limit.rlim_max ? count + OTHER_FILES : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

bool fay_traps_take(struct fay_traps *traps, const struct fay_session *session, pid_t pid)
{
	size_t count = fay_session_trap_count(session), end;
	if (!count)
		return true;
	if (!make_tables(traps))
		return false;
	if (traps->count + count > FAY_TRAPS_MAX)
		fay_traps_release_ended(traps);
	for (size_t i = 0; i < count; i = end) {
		const struct fay_trap *trap = fay_session_trap(session, i);
		bool taken =
			is_given_up(traps, trap) || (traps->places_only && !trap->function.marker);
		end = point_end(session, i);
		for (uint32_t object = 0; object <= traps->object_count && !taken; object++)
			taken = take_by(traps, object, session, pid, i, end);
	}
	allow_files(traps->count + 2 * traps->program_count);
	return true;
}

static bool is_taken(const struct fay_traps *traps, const struct fay_trap_item *item,
		     const void *session)
{
	(void)traps;
	return item->session == session && !item->set;
}

void fay_traps_put_back(struct fay_traps *traps, const struct fay_session *session)
{
	fay_traps_remove(traps, is_taken, session);
}

uint32_t fay_traps_new(const struct fay_traps *traps, const struct fay_trap **programs)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < traps->program_count; i++)
		if (traps->programs[i].object == traps->object_count)
			programs[count++] = &traps->programs[i].trap;
	return count;
}

static bool is_of_object(const struct fay_traps *traps, const struct fay_trap_item *item,
			 const void *object)
{
	return traps->programs[item->program].object == *(const uint32_t *)object;
}

void fay_traps_made(struct fay_traps *traps, struct fay_bpf_session *object)
{
	uint32_t first = 0;
	if (object) {
		traps->objects[traps->object_count++] = object;
		return;
	}
	fay_traps_remove(traps, is_of_object, &traps->object_count);
	while (first < traps->program_count && traps->programs[first].object != traps->object_count)
		first++;
	drop_programs(traps, first);
}

/* --- setting --- */

static void add_process(struct fay_traps *traps, const struct fay_trap_item *item)
{
	for (size_t i = 0; i < traps->process_count; i++)
		if (traps->processes[i].pid == item->pid)
			return;
	if (traps->process_count == FAY_TRAPS_MAX)
		return;
	traps->processes[traps->process_count++] =
		(struct fay_trap_process){ .pid = item->pid,
					   .born = fay_process_start(item->pid),
					   .stack = item->trap.stack,
					   .cpu = fay_process_cpu_ns(item->pid) };
}

/* Those of one point, [first, end), that run the same program as the first one that is not set. */
static int set_some(struct fay_traps *traps, size_t first, size_t end, struct fay_error *error)
{
	const struct fay_trap *places[FAY_TRAP_TOGETHER];
	struct fay_trap_item *items = traps->items;
	const struct fay_trap_program *program = &traps->programs[items[first].program];
	uint32_t count = 0, number;
	for (size_t i = first; i < end && count < FAY_TRAP_TOGETHER; i++)
		if (!items[i].set && items[i].program == items[first].program)
			places[count++] = &items[i].trap;
	int code = fay_bpf_session_trap(traps->objects[program->object], program->number,
					items[first].pid, places, count, &number, error);
	for (size_t i = first; i < end && !code && count; i++)
		if (!items[i].set && items[i].program == items[first].program) {
			items[i].set = true;
			items[i].number = number++;
			count--;
		}
	return code;
}

/* What was set for another mapping of the same place is here, too. */
static bool share(struct fay_traps *traps, struct fay_trap_item *item)
{
	for (size_t i = 0; i < traps->count; i++) {
		struct fay_trap_item *other = &traps->items[i];
		if (!other->set || other->pid != item->pid || other->program != item->program ||
		    other->trap.offset != item->trap.offset)
			continue;
		item->number = other->number;
		item->set = item->shared = other->shared = true;
		return true;
	}
	return false;
}

static bool is_of_point(const struct fay_traps *traps, const struct fay_trap_item *item,
			const void *point)
{
	(void)traps;
	return item->point == *(const uint64_t *)point;
}

/* All of the point whose first item it is, or none. Returns the first item of the next. */
static size_t set_point(struct fay_traps *traps, size_t first, struct fay_error *why)
{
	struct fay_trap_item *items = traps->items;
	struct fay_error error;
	uint64_t point = items[first].point;
	size_t end = first;
	int code = FAY_OK;
	while (end < traps->count && items[end].point == point)
		end++;
	for (size_t i = first; i < end && !code; i++)
		code = items[i].set || share(traps, &items[i]) ? FAY_OK
							       : set_some(traps, i, end, &error);
	if (!code) {
		add_process(traps, &items[first]);
		traps->set++;
		return end;
	}
	if (!why->code)
		*why = error;
	fay_traps_remove(traps, is_of_point, &point);
	return first;
}

void fay_traps_set(struct fay_traps *traps, struct fay_error *first)
{
	for (size_t i = 0; i < traps->count;)
		i = traps->items[i].set ? i + 1 : set_point(traps, i, first);
	fay_traps_count(traps, true);
}

/* All of a point, for the child: nothing is set yet. */
static void copy_point(struct fay_traps *traps, size_t first, size_t end, pid_t child)
{
	if (traps->count + (end - first) > FAY_TRAPS_MAX)
		return;
	traps->points++;
	for (size_t i = first; i < end; i++) {
		struct fay_trap_item *item = &traps->items[traps->count++];
		*item = traps->items[i];
		item->session = NULL;
		item->pid = child;
		item->point = traps->points;
		item->set = item->shared = false;
	}
}

static size_t functions_of(const struct fay_traps *traps, pid_t pid)
{
	size_t functions = 0;
	for (size_t i = 0; i < traps->count; i++)
		functions += traps->items[i].pid == pid &&
			     (!i || traps->items[i].point != traps->items[i - 1].point);
	return functions;
}

bool fay_traps_for_children(const struct fay_traps *traps)
{
	for (size_t i = 0; i < traps->count; i++)
		if ((!i || traps->items[i].pid != traps->items[i - 1].pid) &&
		    functions_of(traps, traps->items[i].pid) <= FAY_TRAPS_LATER)
			return true;
	return false;
}

bool fay_traps_set_child(struct fay_traps *traps, pid_t parent, pid_t child)
{
	struct fay_error error = { 0 };
	size_t end, count;
	if (functions_of(traps, parent) > FAY_TRAPS_LATER)
		return false;
	if (traps->count > FAY_TRAPS_MAX / 2)
		fay_traps_release_ended(traps);
	count = traps->count;
	for (size_t i = 0; i < count; i = end) {
		end = i + 1;
		while (end < count && traps->items[end].point == traps->items[i].point)
			end++;
		if (traps->items[i].pid == parent)
			copy_point(traps, i, end, child);
	}
	if (traps->count > count)
		fay_traps_set(traps, &error);
	return true;
}

bool fay_traps_any(const struct fay_traps *traps, const struct fay_session *session)
{
	for (size_t i = 0; i < traps->count; i++)
		if (traps->items[i].session == session && traps->items[i].set)
			return true;
	return false;
}

bool fay_traps_has(const struct fay_traps *traps, const struct fay_session *session, size_t skipped)
{
	for (size_t i = 0; i < traps->count; i++) {
		const struct fay_trap_item *item = &traps->items[i];
		if (item->set && item->session == session && item->trap.skipped == skipped)
			return true;
	}
	return false;
}

void fay_traps_count(struct fay_traps *traps, bool counted)
{
	for (uint32_t i = 0; i < traps->object_count; i++)
		fay_bpf_session_count(traps->objects[i], counted);
}

void fay_traps_deinit(struct fay_traps *traps)
{
	drop_programs(traps, 0);
	for (size_t i = 0; i < traps->file_count; i++)
		close(traps->files[i].fd);
	free(traps->items);
	free(traps->programs);
	free(traps->files);
	free(traps->processes);
}
