/* SPDX-License-Identifier: MIT */
// Boyer and Moore's majority vote over the high byte of a value.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t candidate;
	uint64_t votes, events;
};

PROBE("libc!write")
{
	uint8_t value = (uint8_t)(event->arg[3] >> 56);

	state->events++;
	if (!state->votes) {
		state->candidate = value;
		state->votes = 1;
	} else if (state->candidate == value) {
		state->votes++;
	} else {
		state->votes--;
	}
}
