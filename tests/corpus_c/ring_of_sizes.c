/* SPDX-License-Identifier: MIT */
// The last 32 sizes and their running sum.
// needs: guard (the position is kept in state)
#include "corpus.h"

STATE {
	uint64_t size[32];
	uint64_t sum;
	uint32_t position;
};

PROBE("libc!write")
{
	uint32_t at = state->position;

	state->sum += event->arg[2] - state->size[at];
	state->size[at] = event->arg[2];
	state->position = at == 31 ? 0 : at + 1;
}
