/* SPDX-License-Identifier: MIT */
// Integer square roots, a bit at a time, and the sum of the remainders.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t roots, remainders;
};

PROBE("libc!write")
{
	uint64_t x = event->arg[3], root = 0;

	for (uint64_t bit = UINT64_C(1) << 62; bit; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	state->roots += root;
	state->remainders += x;
}
