/* SPDX-License-Identifier: MIT */
// UTF-8 by a state machine in two tables.
// needs: nothing
#include "corpus.h"

static const uint8_t class_of[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4};
/* states: 0 start, 1 one more, 2 two more, 3 three more, 4 broken */
static const uint8_t next_state[5][5] = {
	{0, 4, 1, 2, 3}, {4, 0, 4, 4, 4}, {4, 1, 4, 4, 4}, {4, 2, 4, 4, 4}, {0, 4, 1, 2, 3},
};

STATE {
	uint64_t points, broken;
};

PROBE("libc!write")
{
	uint8_t b[80];
	unsigned s = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++) {
		s = next_state[s][class_of[b[i] >> 4]];
		if (s == 0)
			state->points++;
		if (s == 4)
			state->broken++;
		if (s > 4)
			return;
	}
}
