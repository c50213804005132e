/* SPDX-License-Identifier: MIT */
// All nodes of a small tree, with an explicit stack of addresses.
// needs: nothing
#include "corpus.h"

enum { DEPTH = 16 };

STATE {
	uint64_t nodes, sizes, too_deep;
};

PROBE("libc!twalk")
{
	uint64_t stack[DEPTH];
	unsigned top = 0;

	for (unsigned i = 0; i < DEPTH; i++)
		stack[i] = 0;
	stack[top++] = event->arg[4];
	for (int n = 0; n < 40 && top > 0; n++) {
		struct record r;
		uint64_t at = stack[--top];

		if (!at || READ(r, at))
			continue;
		state->nodes++;
		state->sizes += r.size;
		if (top + 2 > DEPTH) {
			state->too_deep++;
			return;
		}
		stack[top++] = r.right;
		stack[top++] = r.left;
	}
}
