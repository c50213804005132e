/* SPDX-License-Identifier: MIT */
// The largest of the last 32 values, by looking at all of them.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t value[32];
	uint32_t position;
	uint32_t largest;
};

PROBE("libc!write")
{
	uint32_t largest = 0;

	state->value[state->position++ % 32] = (uint32_t)event->arg[2];
	for (unsigned i = 0; i < 32; i++)
		if (state->value[i] > largest)
			largest = state->value[i];
	state->largest = largest;
}
