/* SPDX-License-Identifier: MIT */
// xorshift and a walk on a line with walls.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t random;
	int32_t place;
	uint32_t visits[41];
	uint64_t bounces;
};

PROBE("libc!rand")
{
	uint64_t r = state->random ? state->random : event->arg[3] | 1;

	for (int i = 0; i < 12; i++) {
		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		state->place += r >> 63 ? 1 : -1;
		if (state->place > 20 || state->place < -20) {
			state->place = 0;
			state->bounces++;
		}
		state->visits[state->place + 20]++;
	}
	state->random = r;
}
