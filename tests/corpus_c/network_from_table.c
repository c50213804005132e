/* SPDX-License-Identifier: MIT */
// A sorting network of five whose comparators are in a table.
// needs: nothing
#include "corpus.h"

static const uint8_t comparators[9][2] = {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1}, {2, 4}, {1, 2}, {3, 4}, {2, 3}};

STATE {
	int32_t median;
	uint32_t swaps;
};

PROBE("libc!write")
{
	int32_t v[5];

	if (READ(v, event->arg[1]))
		return;
	for (unsigned c = 0; c < 9; c++) {
		unsigned a = comparators[c][0] % 5, b = comparators[c][1] % 5;

		if (v[a] > v[b]) {
			int32_t t = v[a];

			v[a] = v[b];
			v[b] = t;
			state->swaps++;
		}
	}
	state->median = v[2];
}
