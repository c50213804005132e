/* SPDX-License-Identifier: MIT */
/* Which traps there are, and which program each runs. */
#include "traps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_EVERY 100000000u /* ns */

static bool is_same_place(const struct fay_trap *a, const struct fay_trap *b)
{
	return a->device == b->device && a->inode == b->inode && a->offset == b->offset &&
	       !strcmp(a->function.name, b->function.name) &&
	       !strcmp(a->function.module, b->function.module) &&
	       !memcmp(a->operands, b->operands, sizeof(a->operands));
}

/* The program for a trap, one that there is if it can be. False: there are too many. */
static bool find_program(struct fay_traps *traps, struct fay_trap_item *item)
{
	uint32_t i = 0;
	while (i < traps->program_count && !is_same_place(traps->programs[i], &item->trap))
		i++;
	if (i == FAY_TRAP_PROGRAMS_MAX)
		return false;
	if (i == traps->program_count)
		traps->programs[traps->program_count++] = &item->trap;
	item->program = i;
	return true;
}

bool fay_traps_take(struct fay_traps *traps, const struct fay_session *session, pid_t pid)
{
	size_t count = fay_session_trap_count(session);
	if (!traps->items)
		traps->items = calloc(FAY_TRAPS_MAX, sizeof(*traps->items));
	for (size_t i = 0; traps->items && i < count && traps->count < FAY_TRAPS_MAX; i++) {
		struct fay_trap_item *item = &traps->items[traps->count];
		*item = (struct fay_trap_item){ .session = session,
						.trap = *fay_session_trap(session, i),
						.pid = pid };
		traps->count += find_program(traps, item);
	}
	if (count && traps->items && traps->process_count < FAY_TARGETS_MAX &&
	    (!traps->process_count || traps->processes[traps->process_count - 1] != pid))
		traps->processes[traps->process_count++] = pid;
	return traps->items != NULL;
}

void fay_traps_set(struct fay_traps *traps, struct fay_bpf_session *session,
		   struct fay_error *first)
{
	for (size_t i = 0; i < traps->count; i++) {
		struct fay_trap_item *item = &traps->items[i];
		struct fay_error error;
		item->set = !fay_bpf_session_trap(session, item->program, item->pid, &item->trap,
						  &item->number, &error);
		traps->set += item->set;
		if (!item->set && !first->code)
			*first = error;
	}
	fay_bpf_session_count(session, true);
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

void fay_traps_check(struct fay_traps *traps, uint64_t now)
{
	char line[128];
	if (now < traps->next_check)
		return;
	traps->next_check = now + CHECK_EVERY;
	for (size_t i = 0; traps->set && i < traps->process_count; i++) {
		pid_t pid = traps->processes[i];
		if (traps->ended[i] || !fay_process_status(pid, "State:", line) ||
		    !strchr(line, 'Z') || !fay_process_start(pid))
			continue;
		traps->ended[i] = true;
		fprintf(stderr,
			"fay: process %d: its first thread has ended, and its traps with it; what "
			"other threads do there is not traced any more\n",
			(int)pid);
	}
}

void fay_traps_deinit(struct fay_traps *traps)
{
	free(traps->items);
}
