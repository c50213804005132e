/* SPDX-License-Identifier: MIT */
// Three exponentially weighted means with different memories, in single precision.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	float fast, middle, slow;
	uint32_t above;
};

PROBE("libc!write")
{
	float x = (float)(event->arg[2] & 0xffff);

	state->fast += (x - state->fast) * 0.5f;
	state->middle += (x - state->middle) * 0.1f;
	state->slow += (x - state->slow) * 0.01f;
	if (state->fast > 2 * state->slow)
		state->above++;
}
