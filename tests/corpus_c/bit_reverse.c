/* SPDX-License-Identifier: MIT */
// Bits in the opposite order, by swapping ever smaller groups.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t last;
	uint32_t palindromes;
};

PROBE("libc!write")
{
	uint64_t x = event->arg[3];

	x = (x >> 1 & UINT64_C(0x5555555555555555)) | (x & UINT64_C(0x5555555555555555)) << 1;
	x = (x >> 2 & UINT64_C(0x3333333333333333)) | (x & UINT64_C(0x3333333333333333)) << 2;
	x = (x >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (x & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
	x = __builtin_bswap64(x);
	if (x == event->arg[3])
		state->palindromes++;
	state->last = x;
}
