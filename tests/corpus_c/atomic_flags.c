/* SPDX-License-Identifier: MIT */
// Which descriptors any thread has used: bits set atomically, first users counted.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t firsts;
};
SHARED {
	uint64_t used[16];
	uint64_t users;
};

PROBE_SHARED("libc!write")
{
	unsigned fd = (unsigned)event->arg[0] & 1023;
	uint64_t bit = UINT64_C(1) << (fd & 63);

	if (!(__atomic_load_n(&shared->used[fd / 64], __ATOMIC_RELAXED) & bit)) {
		__atomic_or_fetch(&shared->used[fd / 64], bit, __ATOMIC_RELAXED);
		state->firsts++;
		__atomic_add_fetch(&shared->users, 1, __ATOMIC_RELAXED);
	}
}
