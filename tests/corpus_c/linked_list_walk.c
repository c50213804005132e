/* SPDX-License-Identifier: MIT */
// The length of a list of the program's records, at most 64.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t length[65], broken;
};

PROBE("redis-server!listRewind")
{
	struct record r;
	uint64_t at = event->arg[4];
	unsigned n = 0;

	while (at && n < 64) {
		if (READ(r, at)) {
			state->broken++;
			return;
		}
		at = r.next;
		n++;
	}
	state->length[n]++;
}
