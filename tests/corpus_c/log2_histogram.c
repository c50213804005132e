/* SPDX-License-Identifier: MIT */
// Sizes by power of two, with the number of leading zeros.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t bucket[65];
};

PROBE("libc!write")
{
	uint64_t size = event->arg[2];

	state->bucket[size ? 64 - __builtin_clzll(size) : 0]++;
}
