/* SPDX-License-Identifier: MIT */
// Shell sort of 24 bytes with the gaps 10, 4, 1.
// needs: nothing
#include "corpus.h"

static const uint8_t gaps[3] = {10, 4, 1};

STATE {
	uint64_t moves;
	uint8_t smallest, largest;
};

PROBE("libc!write")
{
	uint8_t v[24];

	if (READ(v, event->arg[1]))
		return;
	for (unsigned g = 0; g < 3; g++)
		for (unsigned i = gaps[g]; i < 24; i++) {
			uint8_t value = v[i];
			unsigned j = i;

			while (j >= gaps[g] && v[j - gaps[g]] > value) {
				v[j] = v[j - gaps[g]];
				j -= gaps[g];
				state->moves++;
			}
			v[j] = value;
		}
	state->smallest = v[0];
	state->largest = v[23];
}
