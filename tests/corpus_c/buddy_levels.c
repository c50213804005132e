/* SPDX-License-Identifier: MIT */
// Sizes rounded up to powers of two, as a buddy allocator does, with the waste.
// needs: nothing
#include "corpus.h"

STATE {
	struct { uint64_t blocks, waste; } order[20];
	uint64_t too_large;
};

PROBE("libc!malloc")
{
	uint64_t size = event->arg[2] + 16;
	unsigned order = 0;

	while (order < 20 && UINT64_C(16) << order < size)
		order++;
	if (order == 20) {
		state->too_large++;
		return;
	}
	state->order[order].blocks++;
	state->order[order].waste += (UINT64_C(16) << order) - size;
}
