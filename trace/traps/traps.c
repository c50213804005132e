/* SPDX-License-Identifier: MIT */
/* Which traps there are, and which program each runs. */
#include "traps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CHECK_EVERY 100000000u /* ns */
#define OTHER_FILES 1024u      /* that fay may have open */

static bool is_same_program(const struct fay_trap *a, const struct fay_trap *b)
{
	return fay_trap_of_same(a, b) && a->kind == b->kind && a->kept == b->kept &&
	       a->condition == b->condition && a->lost == b->lost &&
	       !memcmp(a->parts, b->parts, sizeof(a->parts)) &&
	       !memcmp(a->operands, b->operands, sizeof(a->operands));
}

/* The program for a trap, one that there is if it can be. False: there are too many. */
static bool find_program(struct fay_traps *traps, struct fay_trap_item *item)
{
	uint32_t i = 0;
	while (i < traps->program_count && !is_same_program(traps->programs[i], &item->trap))
		i++;
	if (i == FAY_TRAP_PROGRAMS_MAX)
		return false;
	if (i == traps->program_count)
		traps->programs[traps->program_count++] = &item->trap;
	item->program = i;
	return true;
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

/* All of one point, or none of them. */
static void take_point(struct fay_traps *traps, const struct fay_session *session, pid_t pid,
		       size_t first, size_t end)
{
	size_t count = traps->count;
	uint32_t programs = traps->program_count;
	for (size_t i = first; i < end; i++) {
		struct fay_trap_item *item = &traps->items[traps->count];
		if (traps->count < FAY_TRAPS_MAX) {
			*item = (struct fay_trap_item){ .session = session,
							.trap = *fay_session_trap(session, i),
							.pid = pid };
			if (find_program(traps, item)) {
				traps->count++;
				continue;
			}
		}
		traps->count = count;
		traps->program_count = programs;
		return;
	}
}

bool fay_traps_take(struct fay_traps *traps, const struct fay_session *session, pid_t pid)
{
	size_t count = fay_session_trap_count(session), end;
	if (!traps->items)
		traps->items = calloc(FAY_TRAPS_MAX, sizeof(*traps->items));
	for (size_t i = 0; traps->items && i < count; i = end) {
		end = point_end(session, i);
		take_point(traps, session, pid, i, end);
	}
	if (count && traps->items && traps->process_count < FAY_TARGETS_MAX &&
	    (!traps->process_count || traps->processes[traps->process_count - 1] != pid))
		traps->processes[traps->process_count++] = pid;
	return traps->items != NULL;
}

static bool is_of_one_point(const struct fay_trap_item *a, const struct fay_trap_item *b)
{
	return a->session == b->session && a->trap.skipped == b->trap.skipped;
}

/* All of the point whose first item it is, or none. Returns the first item of the next. */
static size_t set_point(struct fay_traps *traps, struct fay_bpf_session *session, size_t first,
			struct fay_error *why)
{
	struct fay_trap_item *items = traps->items;
	size_t end = first;
	bool all = true;
	for (; end < traps->count && is_of_one_point(&items[first], &items[end]); end++) {
		struct fay_error error;
		if (!all)
			continue;
		all = items[end].set =
			!fay_bpf_session_trap(session, items[end].program, items[end].pid,
					      &items[end].trap, &items[end].number, &error);
		if (!all && !why->code)
			*why = error;
	}
	for (size_t i = first; i < end && !all; i++)
		if (items[i].set) {
			fay_bpf_session_untrap(session, items[i].number);
			items[i].set = false;
		}
	traps->set += all;
	return end;
}

/* Each trap is an open file. */
static void allow_files(size_t count)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= count + OTHER_FILES)
		return;
	limit.rlim_cur =
		count + OTHER_FILES < limit.rlim_max ? count + OTHER_FILES : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void fay_traps_set(struct fay_traps *traps, struct fay_bpf_session *session,
		   struct fay_error *first)
{
	allow_files(traps->count);
	for (size_t i = 0; i < traps->count;)
		i = set_point(traps, session, i, first);
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
		fprintf(traps->messages,
			"fay: process %d: its first thread has ended, and its traps with it; what "
			"other threads do there is not traced any more\n",
			(int)pid);
	}
}

void fay_traps_deinit(struct fay_traps *traps)
{
	free(traps->items);
}
