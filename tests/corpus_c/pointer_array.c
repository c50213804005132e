/* SPDX-License-Identifier: MIT */
// An array of pointers in the program: how many are set, and one level further.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t set, null, kinds[8];
};

PROBE("nginx!ngx_array_push")
{
	uint64_t pointers[4];
	struct record r;

	if (READ(r, event->arg[4]))
		return;
	pointers[0] = r.next;
	pointers[1] = r.left;
	pointers[2] = r.right;
	pointers[3] = r.name;
	for (unsigned i = 0; i < 4; i++) {
		uint32_t kind;

		if (!pointers[i]) {
			state->null++;
			continue;
		}
		state->set++;
		if (!READ(kind, pointers[i] + offsetof(struct record, kind)))
			state->kinds[kind & 7]++;
	}
}
