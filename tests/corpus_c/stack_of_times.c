/* SPDX-License-Identifier: MIT */
// Nesting: an even descriptor pushes the time, an odd one pops it.
// needs: guard (the depth is kept in state)
#include "corpus.h"

enum { DEPTH = 16 };

STATE {
	uint64_t entered[DEPTH];
	uint32_t depth;
	uint64_t total, too_deep, unmatched;
};

PROBE("libc!write")
{
	if (event->arg[0] & 1) {
		if (!state->depth)
			state->unmatched++;
		else
			state->total += event->time - state->entered[--state->depth];
	} else if (state->depth < DEPTH) {
		state->entered[state->depth++] = event->time;
	} else {
		state->too_deep++;
	}
}
