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

/* Processor time since the last look, and the times as they are now. What processes used that have
 * ended since is not known: as if one processor had been busy. */
static uint64_t cpu_since(const struct fay_traps *traps, uint64_t now, uint64_t *cpu)
{
	uint64_t used = 0;
	for (size_t i = 0; i < traps->process_count; i++) {
		const struct fay_trap_process *process = &traps->processes[i];
		cpu[i] = fay_process_cpu_ns(process->pid);
		used += cpu[i] > process->cpu ? cpu[i] - process->cpu : 0;
	}
	if (traps->process_ended && used < now - traps->looked)
		used = now - traps->looked;
	return used;
}

static bool is_of_function(const struct fay_traps *traps, const struct fay_trap_item *item,
			   const void *function)
{
	(void)traps;
	return fay_trap_of_same(&item->trap, function);
}

/* All of the function that the program is for. */
static void give_up(struct fay_traps *traps, uint32_t program, double share, uint64_t now)
{
	const struct fay_trap *of = &traps->programs[program].trap;
	uint64_t point = 0;
	for (size_t i = 0; i < traps->count; i++) {
		const struct fay_trap_item *item = &traps->items[i];
		if (!item->set || !fay_trap_of_same(&item->trap, of))
			continue;
		traps->left_out += item->point != point;
		point = item->point;
	}
	fay_traps_remove(traps, is_of_function, of);
	for (uint32_t i = 0; i < traps->program_count; i++) {
		struct fay_trap_program *one = &traps->programs[i];
		if (one->given_up || !fay_trap_of_same(&one->trap, of))
			continue;
		one->given_up = true;
		one->since = now;
	}
	share = share < 1 ? share : 1;
	fprintf(traps->messages,
		"fay: not traced any more: %s!%s: its traps took about %.0f%% of the processor "
		"time; --budget none keeps them\n",
		of->function.module, of->function.name, 100 * share);
}

/* Nanoseconds since the last look, by the first program of each function. */
static void spent_by(struct fay_traps *traps, uint64_t *spent)
{
	for (uint32_t i = 0; i < traps->program_count; i++) {
		struct fay_trap_program *program = &traps->programs[i];
		uint64_t all = fay_bpf_session_events(traps->objects[program->object],
						      program->number),
			 events = all - program->events;
		uint32_t first = 0;
		while (!fay_trap_of_same(&traps->programs[first].trap, &program->trap))
			first++;
		spent[i] = 0;
		spent[first] += events * (program->trap.function.marker ? NOP_NS : STEP_NS);
		program->events = all;
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

void fay_traps_look(struct fay_traps *traps, double share, uint64_t now)
{
	uint64_t spent[FAY_TRAP_PROGRAMS_MAX], cpu[FAY_TRAPS_MAX];
	uint32_t most = 0;
	if (!traps->set || share <= 0 || now < traps->next)
		return;
	traps->next = now + LOOK_EVERY;
	traps->looked = traps->looked ? traps->looked : now;
	uint64_t used = cpu_since(traps, now, cpu);
	if (used < CPU_LEAST)
		return;
	for (size_t i = 0; i < traps->process_count; i++)
		traps->processes[i].cpu = cpu[i];
	traps->looked = now;
	traps->process_ended = 0;
	spent_by(traps, spent);
	for (uint64_t sum = find_most(traps, spent, &most); (double)sum > share * (double)used;
	     sum = find_most(traps, spent, &most)) {
		give_up(traps, most, (double)spent[most] / (double)used, now);
		spent[most] = 0;
	}
}
