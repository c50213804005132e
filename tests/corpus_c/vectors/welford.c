/* SPDX-License-Identifier: MIT */
// Mean and variance of the lengths, one update a call (Welford 1962).
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint64_t count;
	double mean, squares, variance;
};

PROBE("libc!write")
{
	double x = (double)(uint32_t)event->arg[2], delta = x - state->mean;

	state->count++;
	state->mean += delta / (double)state->count;
	state->squares += delta * (x - state->mean);
	state->variance = state->squares / (double)state->count;
}
