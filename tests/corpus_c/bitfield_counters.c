/* SPDX-License-Identifier: MIT */
// Saturating counters of three bits in one word, updated through a struct.
// needs: nothing
#include "corpus.h"

STATE {
	struct { uint16_t a : 3, b : 3, c : 3, d : 3, full : 4; } counters;
	uint64_t resets;
};

PROBE("libc!write")
{
	switch (event->arg[0] & 3) {
	case 0:
		if (state->counters.a < 7)
			state->counters.a++;
		break;
	case 1:
		if (state->counters.b < 7)
			state->counters.b++;
		break;
	case 2:
		if (state->counters.c < 7)
			state->counters.c++;
		break;
	default:
		if (state->counters.d < 7)
			state->counters.d++;
		else if (++state->counters.full == 0)
			state->resets++;
	}
}
