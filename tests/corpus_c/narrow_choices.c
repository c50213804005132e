/* SPDX-License-Identifier: MIT */
/* Indices that are clamped as numbers of 8 and 16 bits, where a comparison of part of a register is all that is needed. */
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t small;
	uint16_t middle;
	uint32_t by_small[19];
	uint16_t by_middle[14];
	uint64_t by_both[30];
};

static inline uint64_t below(uint64_t x, uint64_t n)
{
	return x < n ? x : n - 1;
}

PROBE("libc!write")
{
	uint64_t at = below((uint16_t)(state->middle + event->arg[2]), 14);

	state->by_small[below((uint8_t)(state->small ^ event->arg[3]), 19)] += (uint32_t)event->arg[2];
	state->by_middle[at] ^= (uint16_t)event->arg[3];
	state->by_both[at + below((uint16_t)(event->arg[2] * 3), 16)]++;
	state->small += (uint8_t)event->arg[2];
	state->middle = (uint16_t)(state->middle * 5 + event->arg[3]);
}
