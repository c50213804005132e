/* SPDX-License-Identifier: MIT */
// 64-bit unsigned numbers to double and back, where no single instruction does it.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	double sum;
	uint64_t back;
	float small;
};

PROBE("libc!write")
{
	double x = (double)event->arg[3];

	state->sum = state->sum * 0.5 + x;
	state->back = x < 18446744073709549568.0 ? (uint64_t)x : 0;
	state->small = (float)event->arg[3];
}
