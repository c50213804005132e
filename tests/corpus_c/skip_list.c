/* SPDX-License-Identifier: MIT */
// A sorted list in state with next numbers instead of pointers, values of 8 bits.
// needs: guard (links are kept in state)
#include "corpus.h"

enum { ROOM = 32 };

STATE {
	struct { uint8_t value, next; uint16_t count; } node[ROOM]; /* node 0 is the head */
	uint32_t used;
	uint64_t full;
};

PROBE("libc!write")
{
	uint8_t value = (uint8_t)event->arg[2];
	unsigned at = 0;

	for (int n = 0; n < ROOM; n++) {
		unsigned next = state->node[at].next;

		if (!next || state->node[next].value > value)
			break;
		at = next;
	}
	if (at && state->node[at].value == value) {
		state->node[at].count++;
		return;
	}
	if (state->used == ROOM - 1) {
		state->full++;
		return;
	}
	state->used++;
	state->node[state->used].value = value;
	state->node[state->used].count = 1;
	state->node[state->used].next = state->node[at].next;
	state->node[at].next = (uint8_t)state->used;
}
