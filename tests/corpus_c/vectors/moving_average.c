/* SPDX-License-Identifier: MIT */
// The mean of the last 16 lengths, and how far the newest is from it.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	double ring[16];
	uint32_t at;
	double mean, deviation;
};

PROBE("libc!write")
{
	double sum = 0;

	state->ring[state->at++ & 15] = (double)(event->arg[2] & 0xfffff);
	for (int i = 0; i < 16; i++)
		sum += state->ring[i];
	state->mean = sum / 16;
	state->deviation = state->ring[(state->at - 1) & 15] - state->mean;
}
