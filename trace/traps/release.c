/* SPDX-License-Identifier: MIT */
/* Traps are taken away: of processes that have ended, run another program, or have unloaded a
 * module. */
#include "traps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK_EVERY 100000000u /* ns */

/* Whether one that is not chosen has the same. */
static bool is_needed(const struct fay_traps *traps, const bool *chosen,
		      const struct fay_trap_item *item)
{
	for (size_t i = 0; i < traps->count && item->shared; i++) {
		const struct fay_trap_item *other = &traps->items[i];
		if (!chosen[i] && other->set && other->number == item->number &&
		    other->program == item->program)
			return true;
	}
	return false;
}

static void untrap(struct fay_traps *traps, const bool *chosen)
{
	uint32_t *numbers = malloc(traps->count * sizeof(*numbers));
	for (uint32_t object = 0; object < traps->object_count && numbers; object++) {
		size_t count = 0;
		for (size_t i = 0; i < traps->count; i++)
			if (chosen[i] && traps->items[i].set &&
			    traps->programs[traps->items[i].program].object == object &&
			    !is_needed(traps, chosen, &traps->items[i]))
				numbers[count++] = traps->items[i].number;
		if (count)
			fay_bpf_session_untrap(traps->objects[object], numbers, count);
	}
	free(numbers);
}

void fay_traps_remove(struct fay_traps *traps,
		      bool (*which)(const struct fay_traps *traps, const struct fay_trap_item *item,
				    const void *context),
		      const void *context)
{
	bool *chosen = traps->count ? calloc(traps->count, sizeof(*chosen)) : NULL, any = false;
	size_t kept = 0;
	for (size_t i = 0; i < traps->count && chosen; i++)
		any |= chosen[i] = which(traps, &traps->items[i], context);
	if (any)
		untrap(traps, chosen);
	for (size_t i = 0; i < traps->count && any; i++)
		if (!chosen[i])
			traps->items[kept++] = traps->items[i];
	traps->count = any ? kept : traps->count;
	free(chosen);
}

static bool is_of_process(const struct fay_traps *traps, const struct fay_trap_item *item,
			  const void *pid)
{
	(void)traps;
	return item->pid == *(const pid_t *)pid;
}

/* Or it runs another program. */
static bool has_ended(const struct fay_trap_process *process)
{
	/* it is not known once the first thread has ended */
	uint64_t stack = fay_process_stack_begin(process->pid);
	return fay_process_start(process->pid) != process->born ||
	       (stack && stack != process->stack);
}

void fay_traps_release_before(struct fay_traps *traps, pid_t pid)
{
	for (size_t i = 0; i < traps->process_count; i++) {
		if (traps->processes[i].pid != pid || !has_ended(&traps->processes[i]))
			continue;
		traps->processes[i] = traps->processes[--traps->process_count];
		traps->process_ended++;
		fay_traps_remove(traps, is_of_process, &pid);
		return;
	}
}

struct mapped {
	pid_t pid;
	int memory;
};

/* The int3 is where the kernel put it, or not at all. */
static bool is_unloaded(const struct fay_traps *traps, const struct fay_trap_item *item,
			const void *context)
{
	const struct mapped *mapped = context;
	uint8_t byte;
	(void)traps;
	return item->pid == mapped->pid && item->set &&
	       (pread(mapped->memory, &byte, 1, (off_t)item->trap.address) != 1 || byte != 0xcc);
}

void fay_traps_release_unloaded(struct fay_traps *traps, pid_t pid)
{
	char path[32];
	struct mapped mapped = { .pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	mapped.memory = traps->count ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (mapped.memory < 0)
		return;
	fay_traps_remove(traps, is_unloaded, &mapped);
	close(mapped.memory);
}

/* A process that is not in the list has ended. */
static bool is_of_ended(const struct fay_traps *traps, const struct fay_trap_item *item,
			const void *context)
{
	(void)context;
	for (size_t i = 0; i < traps->process_count; i++)
		if (traps->processes[i].pid == item->pid)
			return false;
	return item->set;
}

void fay_traps_release_ended(struct fay_traps *traps)
{
	size_t ended = traps->process_ended;
	for (size_t i = traps->process_count; i-- > 0;) {
		if (!has_ended(&traps->processes[i]))
			continue;
		traps->processes[i] = traps->processes[--traps->process_count];
		traps->process_ended++;
	}
	if (traps->process_ended != ended)
		fay_traps_remove(traps, is_of_ended, NULL);
}

void fay_traps_forget(struct fay_traps *traps, const struct fay_session *session)
{
	for (size_t i = 0; i < traps->count; i++)
		if (traps->items[i].session == session)
			traps->items[i].session = NULL;
}

void fay_traps_check(struct fay_traps *traps, uint64_t now)
{
	char line[128];
	if (now < traps->next_check || !traps->process_count)
		return;
	traps->next_check = now + CHECK_EVERY;
	for (size_t i = 0; i < traps->process_count; i++) {
		struct fay_trap_process *process = &traps->processes[i];
		if (process->said || !fay_process_status(process->pid, "State:", line) ||
		    !strchr(line, 'Z') || !fay_process_start(process->pid))
			continue;
		process->said = true;
		if (!fay_bpf_traps_together())
			fprintf(traps->messages,
				"fay: process %d: its first thread has ended, and its traps with "
				"it; what other threads do there is not traced any more\n",
				(int)process->pid);
	}
	fay_traps_release_ended(traps);
}
