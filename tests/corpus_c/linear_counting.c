/* SPDX-License-Identifier: MIT */
// How many different keys, by the number of empty bits.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t bits[16];
	uint32_t empty;
};

PROBE("libc!write")
{
	uint32_t h = (uint32_t)(event->arg[0] * UINT64_C(0x9e3779b97f4a7c15) >> 54);
	uint32_t empty = 0;

	state->bits[h >> 6] |= UINT64_C(1) << (h & 63);
	for (unsigned i = 0; i < 16; i++)
		empty += 64 - (uint32_t)__builtin_popcountll(state->bits[i]);
	state->empty = empty;
}
