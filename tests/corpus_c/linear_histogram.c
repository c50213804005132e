/* SPDX-License-Identifier: MIT */
// Sizes in steps of 512 bytes; the last bucket takes what is larger.
// needs: nothing
#include "corpus.h"

enum { BUCKETS = 32, WIDTH = 512 };

STATE {
	uint64_t bucket[BUCKETS];
	uint64_t total;
};

PROBE("libc!write")
{
	uint64_t n = event->arg[2] / WIDTH;

	if (n >= BUCKETS)
		n = BUCKETS - 1;
	state->bucket[n]++;
	state->total++;
}
