/* SPDX-License-Identifier: MIT */
// A small twisted generator with 16 words of state.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t word[16];
	uint32_t at;
	uint64_t ones;
};

PROBE("libc!rand")
{
	uint32_t at = state->at++ & 15, x, y;

	if (!state->word[0])
		for (uint32_t i = 0, seed = (uint32_t)event->arg[3] | 1; i < 16; i++)
			state->word[i] = seed = seed * 1812433253u + i;
	x = (state->word[at] & 0x80000000) | (state->word[(at + 1) & 15] & 0x7fffffff);
	state->word[at] = state->word[(at + 7) & 15] ^ x >> 1 ^ (x & 1 ? 0x9908b0dfu : 0);
	y = state->word[at];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	y ^= y >> 18;
	state->ones += (uint64_t)__builtin_popcount(y);
}
