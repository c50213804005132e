/* SPDX-License-Identifier: MIT */
// How often a key occurs, at most overestimated: four rows of 128 counters.
// needs: nothing
#include "corpus.h"

enum { DEPTH = 4, WIDTH = 128 };
static const uint32_t seeds[DEPTH] = {0x9e3779b1u, 0x85ebca77u, 0xc2b2ae3du, 0x27d4eb2fu};

STATE {
	uint32_t counter[DEPTH][WIDTH];
	uint32_t most;
};

PROBE("libc!write")
{
	uint32_t key = (uint32_t)(event->arg[0] ^ event->arg[0] >> 32), estimate = UINT32_MAX;

	for (unsigned d = 0; d < DEPTH; d++) {
		uint32_t *c = &state->counter[d][(key * seeds[d]) >> 25];

		if (++*c < estimate)
			estimate = *c;
	}
	if (estimate > state->most)
		state->most = estimate;
}
