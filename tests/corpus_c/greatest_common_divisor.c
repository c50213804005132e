/* SPDX-License-Identifier: MIT */
// Euclid's algorithm with a bound on its steps.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t coprime, sum;
};

PROBE("libc!write")
{
	uint64_t a = event->arg[2] | 1, b = event->arg[3];

	for (int n = 0; n < 96 && b; n++) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	if (a == 1)
		state->coprime++;
	state->sum += a;
}
