/* SPDX-License-Identifier: MIT */
// Counters that all threads share, with atomic addition and the largest by compare and exchange.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t mine;
};
SHARED {
	uint64_t calls, bytes, largest;
	uint32_t by_class[8];
};

PROBE_SHARED("libc!write")
{
	uint64_t size = event->arg[2], seen;

	state->mine++;
	__atomic_fetch_add(&shared->calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->bytes, size, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->by_class[size & 7], 1, __ATOMIC_RELAXED);
	seen = __atomic_load_n(&shared->largest, __ATOMIC_RELAXED);
	for (int tries = 0; tries < 8 && seen < size; tries++)
		if (__atomic_compare_exchange_n(&shared->largest, &seen, size, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
}
