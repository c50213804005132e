/* SPDX-License-Identifier: MIT */
// Bytes between segments of one stream, with 32-bit sequence numbers that wrap.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t expected;
	bool known;
	uint64_t in_order, early, late;
};

PROBE("libc!recv")
{
	uint8_t h[20];
	uint32_t sequence;
	int32_t ahead;

	if (READ(h, event->arg[1]))
		return;
	sequence = get_be32(h + 4);
	ahead = (int32_t)(sequence - state->expected);
	if (!state->known || ahead == 0)
		state->in_order++;
	else if (ahead > 0)
		state->early += (uint32_t)ahead;
	else
		state->late += (uint32_t)-ahead;
	state->known = true;
	state->expected = sequence + (uint32_t)event->arg[2];
}
