/* SPDX-License-Identifier: MIT */
// Sizes by a table of limits, searched from the smallest.
// needs: nothing
#include "corpus.h"

static const uint32_t limits[] = {0, 64, 128, 256, 512, 1024, 1500, 4096, 9000, 16384, 65536};
enum { LIMITS = sizeof(limits) / sizeof(*limits) };

STATE {
	uint64_t bucket[LIMITS + 1];
};

PROBE("libc!write")
{
	unsigned i = 0;

	while (i < LIMITS && event->arg[2] > limits[i])
		i++;
	state->bucket[i]++;
}
