/* SPDX-License-Identifier: MIT */
// Whether eight queens, a column for each nibble, attack each other.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t attacks[29];
};

PROBE("libc!write")
{
	uint32_t places = (uint32_t)event->arg[3];
	unsigned attacks = 0;

	for (int a = 0; a < 8; a++)
		for (int b = a + 1; b < 8; b++) {
			int ra = places >> 4 * a & 7, rb = places >> 4 * b & 7;

			if (ra == rb || ra - rb == a - b || ra - rb == b - a)
				attacks++;
		}
	state->attacks[attacks]++;
}
