/* SPDX-License-Identifier: MIT */
/*
 * Quicksort without recursion (Sedgewick, CACM 1978): the larger part waits on a stack in state. 64 numbers, and bytes for places, which
 * shows that every loop ends.
 */
#include "kernel.h"

#define COUNT 64

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

	for (unsigned parts = 0; parts < 2 * COUNT; parts++) {
		if (low < high) {
			unsigned middle = (low + high) / 2;
			uint32_t pivot = S.number[middle], t;
			uint8_t keep = low;

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
			if (keep - low > high - keep) {
				S.part[depth].low = (uint8_t)low;
				S.part[depth++].high = (uint8_t)(keep ? keep - 1 : 0);
				low = (uint8_t)(keep + 1);
			} else {
				S.part[depth].low = (uint8_t)(keep + 1);
				S.part[depth++].high = (uint8_t)high;
				high = (uint8_t)(keep ? keep - 1 : 0);
			}
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
