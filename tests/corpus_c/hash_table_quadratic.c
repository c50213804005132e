/* SPDX-License-Identifier: MIT */
// Sizes by key: triangular probing, the counts saturate.
// needs: nothing
#include "corpus.h"

enum { ROWS = 64 };

STATE {
	uint32_t key[ROWS];
	uint16_t count[ROWS];
	uint32_t full;
};

PROBE("libc!write")
{
	uint32_t key = (uint32_t)event->arg[2] | 1;
	uint32_t at = (key ^ key >> 15) * 0x85ebca6bu;

	for (uint32_t step = 1; step <= 16; step++) {
		uint32_t slot = at & (ROWS - 1);

		if (state->key[slot] == 0 || state->key[slot] == key) {
			state->key[slot] = key;
			if (state->count[slot] != UINT16_MAX)
				state->count[slot]++;
			return;
		}
		at += step;
	}
	state->full++;
}
