/* SPDX-License-Identifier: MIT */
// A bucket computed in floating point, clamped before use.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint32_t buckets[40];
};

PROBE("libc!write")
{
	double x = (double)(int64_t)event->arg[3] * 1e-17 + 20;
	int64_t i = x > 0 && x < 40 ? (int64_t)x : 0;

	if (i >= 0 && i < 40)
		state->buckets[i]++;
}
