/* SPDX-License-Identifier: MIT */
// Finds the record of a kind and adds its size.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t found, missing, bytes, steps;
};

PROBE("redis-server!dictFind")
{
	struct record r;
	uint32_t wanted = (uint32_t)event->arg[0] & 7;

	for (uint64_t at = event->arg[4], n = 0; at && n < 100; at = r.next, n++) {
		state->steps++;
		if (READ(r, at))
			break;
		if (r.kind == wanted) {
			state->found++;
			state->bytes += r.size;
			return;
		}
	}
	state->missing++;
}
