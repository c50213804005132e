/* SPDX-License-Identifier: MIT */
// How many different keys: HyperLogLog with 256 registers.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t rank[256];
	uint64_t events;
};

PROBE("libc!write")
{
	uint64_t h = event->arg[3];
	uint8_t rank;

	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	h ^= h >> 33;
	rank = (uint8_t)(1 + __builtin_ctzll(h >> 8 | UINT64_C(1) << 56));
	if (state->rank[h & 255] < rank)
		state->rank[h & 255] = rank;
	state->events++;
}
