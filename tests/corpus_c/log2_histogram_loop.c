/* SPDX-License-Identifier: MIT */
// Sizes by power of two, counted in a loop, as on a CPU without a bit scan.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t bucket[64];
};

PROBE("libc!write")
{
	uint64_t size = event->arg[2];
	unsigned bucket = 0;

	while (size > 1 && bucket < 63) {
		size >>= 1;
		bucket++;
	}
	state->bucket[bucket]++;
}
