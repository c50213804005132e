/* SPDX-License-Identifier: MIT */
// A weighted choice: the heaviest of the last calls stays, older ones fade.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	double weight, total;
	uint64_t chosen, replaced;
};

PROBE("libc!write")
{
	double w = (double)(event->arg[2] & 0xffff) + 1;

	state->total = state->total * 0.999 + w;
	state->weight *= 0.999;
	if (w > state->weight) {
		state->weight = w;
		state->chosen = event->arg[0];
		state->replaced++;
	}
}
