/* SPDX-License-Identifier: MIT */
/*
 * Quicksort without recursion (Sedgewick, CACM 1978): the larger part waits on a stack in state.
 * 256 numbers, and bytes for places, which shows that every loop ends.
 */
#include "kernel.h"

#define COUNT 256

struct state {
	uint32_t number[COUNT];
	struct {
		uint8_t low, high;
	} part[16];
};

KERNEL
{
	uint8_t low = 0, high = COUNT - 1;
	unsigned depth = 0;

	for (unsigned parts = 0; parts < COUNT; parts++) { /* each puts one number in its place */
		unsigned middle = (low + high) / 2u;
		uint32_t pivot = S.number[middle], t;
		unsigned keep = low;

		S.number[middle] = S.number[high];
		S.number[high] = pivot;
		for (unsigned i = low; i < high; i++) {
			t = S.number[i];
			if (t < pivot) {
				S.number[i] = S.number[keep];
				S.number[keep++] = t;
			}
		}
		S.number[high] = S.number[keep];
		S.number[keep] = pivot;
		/* both parts are left to do: the larger one waits */
		if (high > keep + 1 && keep > low + 1u) {
			int upper = high - keep > keep - low;

			S.part[depth].low = upper ? (uint8_t)(keep + 1) : low;
			S.part[depth++].high = upper ? high : (uint8_t)(keep - 1);
			if (upper)
				high = (uint8_t)(keep - 1);
			else
				low = (uint8_t)(keep + 1);
		} else if (high > keep + 1) {
			low = (uint8_t)(keep + 1);
		} else if (keep > low + 1u) {
			high = (uint8_t)(keep - 1);
		} else {
			if (!depth)
				return;
			depth--;
			low = S.part[depth].low;
			high = S.part[depth].high;
		}
	}
}

SETUP
{
	event->arg[0] = COUNT;
	for (unsigned i = 0; i < COUNT; i++)
		setup_state->number[i] = setup_random(seed);
}
