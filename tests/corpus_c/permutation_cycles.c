/* SPDX-License-Identifier: MIT */
// Cycles of a permutation of 16 made from the event.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t cycles[17], fixed_points;
};

PROBE("libc!write")
{
	uint8_t p[16];
	uint32_t seen = 0;
	unsigned cycles = 0;
	uint64_t r = event->arg[3];

	for (unsigned i = 0; i < 16; i++)
		p[i] = (uint8_t)i;
	for (unsigned i = 15; i > 0; i--) {
		unsigned j = (unsigned)(r % (i + 1));
		uint8_t t = p[i];

		p[i] = p[j];
		p[j] = t;
		r = r * 6364136223846793005u + 1;
	}
	for (unsigned i = 0; i < 16; i++) {
		unsigned at = i;

		if (p[i] == i)
			state->fixed_points++;
		if (seen >> i & 1)
			continue;
		cycles++;
		for (int n = 0; n < 16 && !(seen >> at & 1); n++) {
			seen |= 1u << at;
			at = p[at] & 15;
		}
	}
	state->cycles[cycles]++;
}
