/* SPDX-License-Identifier: MIT */
// Stein's algorithm: only shifts and subtractions.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t sum;
	uint32_t steps;
};

PROBE("libc!write")
{
	uint32_t a = (uint32_t)event->arg[2] | 1, b = (uint32_t)event->arg[3] | 1;

	for (int n = 0; n < 64 && a != b; n++) {
		if (a > b) {
			a -= b;
			a >>= __builtin_ctz(a);
		} else {
			b -= a;
			b >>= __builtin_ctz(b);
		}
		state->steps++;
	}
	state->sum += a;
}
