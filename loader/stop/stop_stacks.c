/* SPDX-License-Identifier: MIT */
/* What lies on a stopped process's stacks: return addresses, and frames of signal handlers. */
#include "stop.h"

#include <stdlib.h>
#include <sys/uio.h>

#include "loader/process/process.h"

#define STACK_SCAN_MAX (1u << 20) /* bytes of each stack that are searched */

#define USER_CS 0x33u
#define SEGMENTS 0x0000ffffffffffffu /* cs, gs, fs; both of the latter are 0 in a signal frame */
#define FLAGS_MAX 0x3fffffu
#define FLAGS_ALWAYS 2u
/* of one thread that are looked at: signal handlers may run on stacks of their own */
#define STACKS_MAX 5u

struct stacks {
	uint64_t start[STACKS_MAX], end[STACKS_MAX];
	size_t count, visited;
};

static bool is_address(uint64_t word)
{
	return word >= 1u << 16 && word < 1ull << 47;
}

/* eflags, and the segment selectors, as the kernel writes them into a signal frame. A 51 alone is
 * none: it is on many stacks, and stays. */
static bool ends_frame(uint64_t flags, uint64_t selectors)
{
	return (selectors & SEGMENTS) == USER_CS && flags <= FLAGS_MAX && (flags & FLAGS_ALWAYS);
}

/* rsp, rip, eflags, and the segment selectors, as they stand in a signal frame: what was
 * interrupted has its stack there. */
static void note_interrupted(struct stacks *stacks, const uint64_t *words)
{
	uint64_t rsp = words[0] & ~7ull;

	if (!ends_frame(words[2], words[3]) || !is_address(words[1]) || !is_address(rsp) ||
	    stacks->count == STACKS_MAX)
		return;
	for (size_t i = 0; i < stacks->visited; i++)
		if (rsp - stacks->start[i] < stacks->end[i] - stacks->start[i])
			return;
	stacks->start[stacks->count++] = rsp;
}

static bool visit_stack(pid_t tid, struct stacks *stacks, const struct fay_maps *maps,
			uint64_t *words, fay_word_visitor *visit, void *context)
{
	uint64_t rsp = stacks->start[stacks->visited];
	const struct fay_map *map = fay_maps_find(maps, rsp);
	struct iovec here, there;
	uint64_t size;
	ssize_t got;

	stacks->end[stacks->visited++] = rsp;
	if (!map)
		return false;
	size = map->end - rsp;
	if (size > STACK_SCAN_MAX)
		size = STACK_SCAN_MAX;
	here = (struct iovec){ words, size };
	there = (struct iovec){ (void *)rsp, size };
	got = process_vm_readv(tid, &here, 1, &there, 1, 0);
	if (got > 0)
		stacks->end[stacks->visited - 1] = rsp + (uint64_t)got;
	for (ssize_t i = 0; i + 8 <= got; i += 8) {
		if (visit(context, rsp + (uint64_t)i, words[i / 8]))
			return true;
		if (i >= 24)
			note_interrupted(stacks, words + i / 8 - 3);
	}
	return false;
}

uint64_t fay_stop_interrupted_at(uint64_t before[2], uint64_t word)
{
	uint64_t rip = ends_frame(before[1], word) ? before[0] : 0;

	before[0] = before[1];
	before[1] = word;
	return rip;
}

bool fay_stop_visit_words(struct fay_stop *stop, fay_word_visitor *visit, void *context)
{
	uint64_t *words = malloc(STACK_SCAN_MAX);
	const struct fay_maps *maps = fay_stop_maps(stop);
	struct stacks stacks;
	bool found = false;

	if (!words || !maps) {
		free(words);
		return true; /* in doubt: as if found */
	}
	for (size_t i = 0; i < stop->count && !found; i++) {
		const struct fay_stopped_thread *thread = &stop->threads[i];

		if (thread->gone || !thread->stopped)
			continue;
		stacks = (struct stacks){ .start = { thread->registers.rsp & ~7ull }, .count = 1 };
		while (stacks.visited < stacks.count && !found)
			found = visit_stack(thread->tid, &stacks, maps, words, visit, context);
	}
	free(words);
	return found;
}
