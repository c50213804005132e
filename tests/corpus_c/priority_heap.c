/* SPDX-License-Identifier: MIT */
// The 15 largest values in a binary heap with the smallest on top.
// needs: nothing
#include "corpus.h"

enum { K = 15 };

STATE {
	uint64_t heap[K + 1]; /* from 1 */
};

PROBE("libc!write")
{
	uint64_t value = event->arg[3];
	unsigned at = 1;

	if (value <= state->heap[1])
		return;
	while (at <= K / 2) {
		unsigned child = 2 * at;

		if (child < K && state->heap[child + 1] < state->heap[child])
			child++;
		if (state->heap[child] >= value)
			break;
		state->heap[at] = state->heap[child];
		at = child;
	}
	state->heap[at] = value;
}
