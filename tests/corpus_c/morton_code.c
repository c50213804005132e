/* SPDX-License-Identifier: MIT */
// Two coordinates interleaved, as the index of a map of 16 by 16.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t cell[256];
};

static inline uint32_t spread(uint32_t x)
{
	x = (x | x << 4) & 0x0f0f;
	x = (x | x << 2) & 0x3333;
	return (x | x << 1) & 0x5555;
}

PROBE("libX11!XDrawPoint")
{
	uint32_t x = (uint32_t)event->arg[2] & 15, y = (uint32_t)event->arg[3] & 15;

	state->cell[spread(x) | spread(y) << 1]++;
}
