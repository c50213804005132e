/* SPDX-License-Identifier: MIT */
// Robin Hood hashing: who is further from home keeps the slot.
// needs: nothing
#include "corpus.h"

enum { ROWS = 32 };

STATE {
	struct slot { uint32_t key, count; } slot[ROWS];
	uint64_t dropped;
};

static inline unsigned home_of(uint32_t key)
{
	return (key * 0x9e3779b1u) >> 27;
}

PROBE("libc!write")
{
	struct slot carried = {(uint32_t)event->arg[0] + 1, 1};
	unsigned at = home_of(carried.key);

	for (unsigned distance = 0; distance < ROWS; distance++, at = (at + 1) % ROWS) {
		struct slot *here = &state->slot[at];
		unsigned theirs;

		if (!here->key) {
			*here = carried;
			return;
		}
		if (here->key == carried.key) {
			here->count += carried.count;
			return;
		}
		theirs = (at - home_of(here->key)) % ROWS;
		if (theirs < distance) {
			struct slot swap = *here;

			*here = carried;
			carried = swap;
			distance = theirs;
		}
		if (!carried.key)
			return;
	}
	state->dropped++;
}
