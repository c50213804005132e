/* SPDX-License-Identifier: MIT */
// A ring that all threads write: each takes a ticket and fills its slot.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t last_ticket;
};
SHARED {
	uint64_t next;
	struct { uint64_t ticket; uint32_t tid, size; } slot[32];
};

PROBE_SHARED("libc!write")
{
	uint64_t ticket = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
	unsigned at = (unsigned)ticket & 31;

	shared->slot[at].tid = event->tid;
	shared->slot[at].size = (uint32_t)event->arg[2];
	__atomic_store_n(&shared->slot[at].ticket, ticket + 1, __ATOMIC_RELEASE);
	state->last_ticket = ticket;
}
