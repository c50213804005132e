/* SPDX-License-Identifier: MIT */
// Walks down a binary tree of the program by weight.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t depth[33], hits;
};

PROBE("libc!tsearch")
{
	struct record r;
	uint64_t at = event->arg[4];
	int32_t wanted = (int32_t)event->arg[3];
	unsigned depth = 0;

	for (; at && depth < 32; depth++) {
		if (READ(r, at))
			break;
		if (r.weight == wanted) {
			state->hits++;
			break;
		}
		at = wanted < r.weight ? r.left : r.right;
	}
	state->depth[depth]++;
}
