/* SPDX-License-Identifier: MIT */
/*
 * Slots for threads. Each new one is the next that nobody has had, while less than half of them are
 * in use. That takes no system call: a forked child may have entered a sandbox that kills it for
 * one. So nobody knows which child has such a slot, unless some probe reads event.pid, and it stays
 * that child's for good.
 *
 * Of the other half a forked child takes the slot of another forked child that has ended, if it
 * finds one: a server that forks for each connection needs as many slots as it has children at
 * once, and its own threads find theirs. State and counters go on from where the ended child left
 * them, since all forked children are added up, or none.
 *
 * A slot is taken from an ended child only if nothing can go wrong with that:
 *	- the number in it, which no process has any more, is one of the traced program's PID
 *	  namespace, and this process is in the same: a child in
 *	  a namespace of its own neither takes slots in this way nor leaves any;
 *	- no probe and no flush was under way in it: a child that was killed there leaves what its
 *	  next reader has to know (aggregator/live/snapshot.c);
 *	- this process's memory has no records for it, as a child of that child's has.
 *
 * Ordering guarantees: `pid` and `taken` change by one compare-and-swap, so of two children only
 * one gets the slot, also if the number has gone round. Once kill() has said that there is no such
 * process all that it has written is there to be read. A process's number is set by a
 * compare-and-swap, so all its threads, and their signal handlers, see the same.
 */
#include "runtime_private.h"

#define LOOKS 64u /* slots that a child looks at before it takes a new one */
#define NO_SUCH_PROCESS 3
#define THIS_DIRECTORY (-100)

uint32_t fay_rt_process(void)
{
	uint32_t *own = (uint32_t *)(fay_config.thread_table + FAY_PROCESS_AT);
	uint32_t found = __atomic_load_n(own, __ATOMIC_ACQUIRE), next;

	if (found)
		return found;
	next = __atomic_add_fetch(&control_page()->process_last, 1, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(own, &found, next, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE)
		       ? next
		       : found;
}

/* So many slots are taken without a system call. */
static uint32_t plenty(void)
{
	return fay_config.slot_max / 2;
}

/* The process knows others by the numbers by which the traced program does. */
static bool same_namespace(void)
{
	uint64_t status[18] = { 0 }; /* struct stat: st_dev, st_ino, ... */

	return fay_config.pid_namespace[1] &&
	       system_call(SYS_NEWFSTATAT, (uint64_t)(int64_t)THIS_DIRECTORY,
			   (uint64_t)"/proc/self/ns/pid", (uint64_t)status, 0, 0, 0) == 0 &&
	       status[0] == fay_config.pid_namespace[0] && status[1] == fay_config.pid_namespace[1];
}

/* One try. */
static bool retake(uint32_t index, uint32_t pid)
{
	struct fay_slot_header *slot = slot_at(index);
	uint64_t *owner = (uint64_t *)&slot->pid;
	uint64_t found = __atomic_load_n(owner, __ATOMIC_ACQUIRE),
		 mine = ((found >> 32) + 1) << 32 | pid;
	uint32_t other = (uint32_t)found;

	if (other == 0 || other == pid || other == control_page()->target_pid || !slot->may_retake)
		return false;
	if (system_call(SYS_KILL, other, 0, 0, 0, 0, 0) != -NO_SUCH_PROCESS)
		return false;
	if (__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE) || slot->sequence % 2 ||
	    fay_rt_records_used(index))
		return false;
	if (!__atomic_compare_exchange_n(owner, &found, mine, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	slot->process = fay_rt_process();
	return true;
}

/* Looks at some slots of the second half, at others each time. */
static uint32_t slot_of_ended_child(uint32_t pid, uint32_t looks)
{
	uint32_t used = slots_used(), first = plenty(), count = used > first ? used - first : 0;
	uint32_t at = __atomic_fetch_add(&control_page()->retake_next, looks, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < looks && i < count; i++)
		if (retake(first + (at + i) % count, pid))
			return first + (at + i) % count;
	return fay_config.slot_max;
}

static uint32_t new_slot(uint32_t pid, bool may_retake)
{
	uint32_t index = __atomic_fetch_add(&control_page()->slot_next, 1, __ATOMIC_RELAXED);
	struct fay_slot_header *slot;

	if (index >= fay_config.slot_max) {
		/* Keep the counter from wrapping around to slots that are in use. */
		__atomic_fetch_sub(&control_page()->slot_next, 1, __ATOMIC_RELAXED);
		return fay_config.slot_max;
	}
	slot = slot_at(index);
	slot->may_retake = may_retake;
	slot->process = fay_rt_process();
	__atomic_store_n((uint64_t *)&slot->pid, (uint64_t)1 << 32 | pid, __ATOMIC_RELEASE);
	return index;
}

uint32_t fay_rt_slot_take(void)
{
	bool many = slots_used() >= plenty(), may_retake;
	uint32_t pid, index = fay_config.slot_max;

	if (fay_rt_process() == FAY_PROCESS_TRACED)
		return new_slot(control_page()->target_pid, false);
	if (!many && !fay_config.pid_read)
		return new_slot(FAY_PID_UNKNOWN, false);
	pid = (uint32_t)system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0);
	may_retake = many && same_namespace();
	if (may_retake)
		index = slot_of_ended_child(pid, LOOKS);
	if (index == fay_config.slot_max)
		index = new_slot(pid, may_retake);
	if (index == fay_config.slot_max && may_retake)
		index = slot_of_ended_child(pid, fay_config.slot_max);
	return index;
}
