/* SPDX-License-Identifier: MIT */
// A queue of 24 with head and length: in when the descriptor is even, out when it is odd.
// needs: guard (head and length are kept in state)
#include "corpus.h"

enum { ROOM = 24 };

STATE {
	uint32_t item[ROOM];
	uint32_t head, length;
	uint64_t sum, full, empty;
};

PROBE("libc!write")
{
	if (!(event->arg[0] & 1)) {
		if (state->length == ROOM) {
			state->full++;
			return;
		}
		state->item[(state->head + state->length) % ROOM] = (uint32_t)event->arg[2];
		state->length++;
		return;
	}
	if (!state->length) {
		state->empty++;
		return;
	}
	state->sum += state->item[state->head];
	state->head = (state->head + 1) % ROOM;
	state->length--;
}
