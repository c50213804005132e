/* SPDX-License-Identifier: MIT */
// The logarithm to base 2 in 16.16 fixed point, by squaring.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t sum;
	uint32_t last;
};

PROBE("libc!write")
{
	uint64_t x = event->arg[2] | 1, y;
	unsigned whole = 63u - (unsigned)__builtin_clzll(x);
	uint32_t fraction = 0;

	y = whole >= 31 ? x >> (whole - 31) : x << (31 - whole);
	for (int i = 0; i < 16; i++) {
		y = y * y >> 31;
		fraction <<= 1;
		if (y >> 32) {
			fraction |= 1;
			y >>= 1;
		}
	}
	state->last = whole << 16 | fraction;
	state->sum += state->last;
}
