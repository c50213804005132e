/* SPDX-License-Identifier: MIT */
// Bits set, by parallel sums, and as a histogram.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t bits[65];
};

PROBE("libc!write")
{
	uint64_t x = event->arg[3];

	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	x = x * UINT64_C(0x0101010101010101) >> 56;
	state->bits[x]++;
}
