/* SPDX-License-Identifier: MIT */
/* Quicksort without recursion (Sedgewick, CACM 1978): the larger part waits on a stack in state. 256 numbers. */
#include "kernel.h"

#define COUNT 256

struct state {
	uint32_t number[COUNT];
	struct {
		uint16_t low, high;
	} part[16];
};

KERNEL
{
	unsigned depth = 0, low = 0, high = COUNT - 1;

	for (unsigned parts = 0; parts < 2 * COUNT; parts++) {
		if (low < high) {
			uint32_t pivot = S.number[(low + high) / 2], t;
			unsigned keep = low;

			S.number[(low + high) / 2] = S.number[high];
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
				S.part[depth].low = (uint16_t)low;
				S.part[depth++].high = (uint16_t)(keep ? keep - 1 : 0);
				low = keep + 1;
			} else {
				S.part[depth].low = (uint16_t)(keep + 1);
				S.part[depth++].high = (uint16_t)high;
				high = keep ? keep - 1 : 0;
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
