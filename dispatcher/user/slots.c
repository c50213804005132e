/* SPDX-License-Identifier: MIT */
/*
 * Slots for threads. Each new one is the next that nobody has had. But a forked child takes the slot of another forked child that has ended, if it finds one: a
 * server that forks for each connection needs as many slots as it has children at once, and its own threads find theirs. State and counters go on from where
 * the ended child left them, since all forked children are added up, or none.
 *
 * A slot is taken from an ended child only if nothing can go wrong with that:
 *	- the number in it, which no process has any more, is one of the traced program's PID namespace, and this process is in the same: a child in
 *	  a namespace of its own neither takes slots in this way nor leaves any;
 *	- no probe and no flush was under way in it: a child that was killed there leaves what its next reader has to know (aggregator/snapshot.c);
 *	- this process's memory has no calls for it, as a child of that child's has.
 *
 * Ordering guarantees: `pid` and `taken` change by one compare-and-swap, so of two children only one gets the slot, also if the number has gone round. Once
 * kill() has said that there is no such process all that it has written is there to be read.
 */
#include "runtime_internal.h"

#define LOOKS 64u /* slots that a child looks at before it takes a new one */
#define NO_SUCH_PROCESS 3
#define THIS_DIRECTORY (-100)

bool fay_rt_same_namespace(void)
{
	uint64_t status[18] = { 0 }; /* struct stat: st_dev, st_ino, ... */

	return fay_config.pid_namespace[1] &&
	       system_call(SYS_NEWFSTATAT, (uint64_t)(int64_t)THIS_DIRECTORY, (uint64_t) "/proc/self/ns/pid", (uint64_t)status, 0, 0, 0) == 0 &&
	       status[0] == fay_config.pid_namespace[0] && status[1] == fay_config.pid_namespace[1];
}

/* One try. */
static bool retake(uint32_t index, uint32_t pid)
{
	struct fay_slot_header *slot = slot_at(index);
	uint64_t *owner = (uint64_t *)&slot->pid;
	uint64_t found = __atomic_load_n(owner, __ATOMIC_ACQUIRE), mine = ((found >> 32) + 1) << 32 | pid;
	uint32_t other = (uint32_t)found;

	if (other == 0 || other == pid || other == control_page()->target_pid || !slot->may_retake)
		return false;
	if (system_call(SYS_KILL, other, 0, 0, 0, 0, 0) != -NO_SUCH_PROCESS)
		return false;
	if (__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE) || slot->sequence % 2 || fay_rt_calls_used(index))
		return false;
	return __atomic_compare_exchange_n(owner, &found, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Looks at some slots, at others each time. */
static uint32_t slot_of_ended_child(uint32_t pid, uint32_t looks)
{
	uint32_t used = slots_used();
	uint32_t at = __atomic_fetch_add(&control_page()->retake_next, looks, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < looks && i < used; i++)
		if (retake((at + i) % used, pid))
			return (at + i) % used;
	return fay_config.slot_max;
}

uint32_t fay_rt_slot_take(bool *retaken)
{
	uint32_t pid = (uint32_t)system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0), index = fay_config.slot_max;
	bool may_retake = pid != control_page()->target_pid && fay_rt_same_namespace();

	if (may_retake)
		index = slot_of_ended_child(pid, LOOKS);
	*retaken = index < fay_config.slot_max;
	if (*retaken)
		return index;
	index = __atomic_fetch_add(&control_page()->slot_next, 1, __ATOMIC_RELAXED);
	if (index < fay_config.slot_max)
		return index;
	/* Keep the counter from wrapping around to slots that are in use. */
	__atomic_fetch_sub(&control_page()->slot_next, 1, __ATOMIC_RELAXED);
	if (may_retake)
		index = slot_of_ended_child(pid, fay_config.slot_max);
	*retaken = index < fay_config.slot_max;
	return *retaken ? index : fay_config.slot_max;
}
