/* SPDX-License-Identifier: MIT */
// Blocks of a logical disk mapped to segments, least used first (as in the lld benchmark).
// needs: guard (segment numbers are kept in state)
#include "corpus.h"

enum { BLOCKS = 64, SEGMENTS = 8 };

STATE {
	uint8_t segment_of[BLOCKS]; /* plus one */
	uint16_t used[SEGMENTS];
	uint64_t reads, writes, moved;
};

PROBE("libc!pwrite")
{
	unsigned block = (unsigned)event->arg[3] & (BLOCKS - 1), least = 0;

	if (event->arg[0] & 1) {
		state->reads += state->segment_of[block] != 0;
		return;
	}
	for (unsigned s = 1; s < SEGMENTS; s++)
		if (state->used[s] < state->used[least])
			least = s;
	if (state->segment_of[block]) {
		state->used[state->segment_of[block] - 1]--;
		state->moved++;
	}
	state->segment_of[block] = (uint8_t)(least + 1);
	state->used[least]++;
	state->writes++;
}
