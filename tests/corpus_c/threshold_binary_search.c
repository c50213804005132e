/* SPDX-License-Identifier: MIT */
// Sizes by a table of limits, found by binary search.
// needs: nothing
#include "corpus.h"

static const uint32_t limits[16] = {8,    16,   32,   64,   96,    128,   256,   512,
				    1024, 1500, 2048, 4096, 16384, 32768, 65536, 131072};

STATE {
	uint64_t bucket[17];
};

PROBE("libc!write")
{
	unsigned low = 0, high = 16;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (event->arg[2] <= limits[middle])
			high = middle;
		else
			low = middle + 1;
	}
	state->bucket[low]++;
}
