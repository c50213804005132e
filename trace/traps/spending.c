/* SPDX-License-Identifier: MIT */
/*
 * What traps take of the programs' processor time. A trap costs some hundred or thousand times
 * what a jump does: at a function that is called all the time it would take most of that. So each
 * LOOK_EVERY the events that came since are counted, and if they took more than is allowed, the
 * places that took most are given up, as many as it takes.
 */
#include "traps.h"

#include <stdio.h>

#define LOOK_EVERY 20000000u /* ns */
#define CPU_LEAST 5000000u   /* ns of processor time, below which a share says little */
/* that an event takes (docs/internals/traps.md): at a marker's nop, which the kernel does itself,
 * and at instructions that it may have to step through */
#define NOP_NS 600u
#define STEP_NS 10000u

static uint64_t cpu_of_all(const struct fay_traps *traps)
{
	uint64_t cpu = 0;
	for (size_t i = 0; i < traps->process_count; i++)
		cpu += fay_process_cpu_ns(traps->processes[i]);
	return cpu;
}

/* All of the function that the program is for. */
static void give_up(struct fay_traps *traps, struct fay_bpf_session *session, uint32_t program,
		    double share)
{
	const struct fay_trap *of = traps->programs[program];
	const struct fay_trap_item *last = NULL;
	for (size_t i = 0; i < traps->count; i++) {
		struct fay_trap_item *item = &traps->items[i];
		if (!item->set || !fay_trap_of_same(&item->trap, of))
			continue;
		fay_bpf_session_untrap(session, item->number);
		item->set = false;
		traps->left_out += !last || last->session != item->session ||
				   last->trap.skipped != item->trap.skipped;
		last = item;
	}
	share = share < 1 ? share : 1;
	fprintf(traps->messages,
		"fay: not traced any more: %s!%s: its traps took about %.0f%% of the processor "
		"time; --budget none keeps them\n",
		of->function.module, of->function.name, 100 * share);
}

/* Nanoseconds since the last look, by the first program of each function. */
static void spent_by(struct fay_traps *traps, const struct fay_bpf_session *session,
		     uint64_t *spent)
{
	for (uint32_t i = 0; i < traps->program_count; i++) {
		uint64_t all = fay_bpf_session_events(session, i), events = all - traps->events[i];
		uint32_t first = 0;
		while (!fay_trap_of_same(traps->programs[first], traps->programs[i]))
			first++;
		spent[i] = 0;
		spent[first] += events * (traps->programs[i]->function.marker ? NOP_NS : STEP_NS);
		traps->events[i] = all;
	}
}

/* Their sum, and the one that took most. */
static uint64_t find_most(const struct fay_traps *traps, const uint64_t *spent, uint32_t *most)
{
	uint64_t sum = 0;
	*most = 0;
	for (uint32_t i = 0; i < traps->program_count; i++) {
		sum += spent[i];
		*most = spent[i] > spent[*most] ? i : *most;
	}
	return sum;
}

void fay_traps_look(struct fay_traps *traps, struct fay_bpf_session *session, double share,
		    uint64_t now)
{
	uint64_t spent[FAY_TRAP_PROGRAMS_MAX];
	uint32_t most = 0;
	if (!traps->set || share <= 0 || now < traps->next)
		return;
	uint64_t cpu = cpu_of_all(traps), before = traps->cpu;
	traps->next = now + LOOK_EVERY;
	if (cpu < before) /* some process has ended */
		traps->cpu = cpu;
	if (cpu < before + CPU_LEAST)
		return;
	spent_by(traps, session, spent);
	traps->cpu = cpu;
	if (!before) /* until the first look it is not known since when the processor was used */
		return;
	double used = (double)(cpu - before);
	for (uint64_t sum = find_most(traps, spent, &most); (double)sum > share * used;
	     sum = find_most(traps, spent, &most)) {
		give_up(traps, session, most, (double)spent[most] / used);
		spent[most] = 0;
	}
}
