/* SPDX-License-Identifier: MIT */
/*
 * A thread that is marked busy has an event. Usually a signal handler has interrupted a probe and
 * calls a traced function: the event is lost, and counted. But the probe may have been left for
 * good: the handler jumped out (siglongjmp), or ended the thread, whose stack and slot another has
 * by now. Then the mark has to go, or all later events of the thread would be lost.
 *
 * While the probe is only interrupted, the frame in which the kernel saved its registers lies on
 * the handler's stack: above this event's frame and below the probe's, or, where signals have a
 * stack of their own, somewhat above this event's. If the stack has no such frame, the probe was
 * left. What is found may be the remains of an old frame in memory that nobody has used since; then
 * the event counts as lost, as in each case of doubt: also where a sandbox lets nothing be read.
 *
 * Limit: a handler that switches to another stack within reach (a scheduler of coroutines that
 * works by signals) makes an interrupted probe look left. The probe that is then let in can spoil
 * the count of one event; it stays in its own memory like any other.
 */
#include "runtime_private.h"

#define SCAN (64u << 10)        /* bytes of the stack that are searched */
#define PROBE_STACK (64u << 10) /* more than a probe and the runtime's routines use */
#define CHUNK 64u               /* words read at once */
#define USER_CS 0x33u

uint32_t fay_rt_still_busy(void *local, uint64_t here);

static bool in_zones(uint64_t address)
{
	for (uint64_t i = 0; i < fay_config.zone_count; i++)
		if (address - fay_config.zones[i].start <
		    fay_config.zones[i].end - fay_config.zones[i].start)
			return true;
	return false;
}

/* rsp, rip, eflags, and the segment selectors, cs lowest, as they stand in a signal frame (Linux,
 * struct sigcontext). */
static bool is_interruption(const uint64_t *words, uint64_t busy)
{
	return (words[3] & 0xffff) == USER_CS && in_zones(words[1]) &&
	       busy - words[0] <= PROBE_STACK;
}

/* Whether a signal frame of the probe that marked the thread lies in the SCAN bytes from `at` on,
 * as far as they can be read. */
static bool finds_interruption(uint64_t at, uint64_t busy)
{
	uint64_t words[CHUNK];

	/* The last bytes before memory that is not there need not be looked at: above these words a
	 * signal frame has the floating-point state. */
	for (uint64_t end = at + SCAN; at < end; at += (CHUNK - 3) * sizeof(*words)) {
		if (fay_rt_try_read(words, sizeof(words), at))
			return false;
		for (uint64_t i = 0; i + 4 <= CHUNK; i++)
			if (is_interruption(words + i, busy))
				return true;
	}
	return false;
}

/* False where a sandbox lets nothing be read: the event's own frame is there. */
static bool may_read(uint64_t here)
{
	uint64_t word;

	return fay_rt_try_read(&word, sizeof(word), here & ~(uint64_t)7) == 0;
}

/* `here`: where this event's trampoline has its frame. */
uint32_t fay_rt_still_busy(void *local, uint64_t here)
{
	struct fay_slot_header *slot = slot_of(local);
	uint64_t busy = __atomic_load_n(&slot->busy, __ATOMIC_RELAXED);

	if (busy == 0)
		return 0; /* by a handler that has found out in between */
	/* Far above: on another stack, or too much stack in between to be searched. */
	if (fay_config.zone_count == 0 || (busy > here && busy - here > SCAN))
		return 1;
	if (!may_read(here) || finds_interruption(here & ~(uint64_t)7, busy))
		return 1;
	__atomic_store_n(&slot->busy, 0, __ATOMIC_RELAXED);
	return 0;
}
