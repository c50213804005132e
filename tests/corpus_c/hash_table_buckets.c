/* SPDX-License-Identifier: MIT */
// Four-way buckets, the least used row gives way.
// needs: nothing
#include "corpus.h"

enum { SETS = 16, WAYS = 4 };

STATE {
	struct { uint64_t key; uint32_t uses, tick; } way[SETS][WAYS];
	uint32_t clock;
};

PROBE("libc!write")
{
	uint64_t key = event->arg[3];
	unsigned set = (unsigned)((key ^ key >> 32) * UINT64_C(0xff51afd7ed558ccd) >> 60);
	unsigned victim = 0;

	state->clock++;
	for (unsigned w = 0; w < WAYS; w++) {
		if (state->way[set][w].key == key) {
			state->way[set][w].uses++;
			state->way[set][w].tick = state->clock;
			return;
		}
		if (state->way[set][w].uses < state->way[set][victim].uses)
			victim = w;
	}
	state->way[set][victim].key = key;
	state->way[set][victim].uses = 1;
	state->way[set][victim].tick = state->clock;
}
