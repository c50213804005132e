/* SPDX-License-Identifier: MIT */
// First free bit of a map of 256; odd descriptors give one back.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t map[4];
	uint64_t full, double_free;
	uint32_t last;
};

PROBE("libc!open")
{
	if (event->arg[0] & 1) {
		unsigned bit = (unsigned)event->arg[3] & 255;

		if (!(state->map[bit / 64] >> bit % 64 & 1))
			state->double_free++;
		state->map[bit / 64] &= ~(UINT64_C(1) << bit % 64);
		return;
	}
	for (unsigned w = 0; w < 4; w++)
		if (~state->map[w]) {
			unsigned bit = (unsigned)__builtin_ctzll(~state->map[w]);

			state->map[w] |= UINT64_C(1) << bit;
			state->last = w * 64 + bit;
			return;
		}
	state->full++;
}
