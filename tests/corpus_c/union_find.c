/* SPDX-License-Identifier: MIT */
// Groups of descriptors that occur together: union-find with path halving.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t parent[32]; /* plus one, 0: itself */
	uint64_t joined, same;
};

static inline unsigned find(STATE *s, unsigned x)
{
	for (int n = 0; n < 32 && s->parent[x]; n++) {
		unsigned up = (s->parent[x] - 1u) & 31;

		if (s->parent[up])
			s->parent[x] = s->parent[up];
		x = up;
	}
	return x;
}

PROBE("libc!dup2")
{
	unsigned a = find(state, (unsigned)event->arg[0] & 31), b = find(state, (unsigned)event->arg[3] & 31);

	if (a == b) {
		state->same++;
		return;
	}
	state->parent[a] = (uint8_t)(b + 1);
	state->joined++;
}
