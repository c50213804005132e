/* SPDX-License-Identifier: MIT */
/*
 * A step of k-means: points of two bytes each, eight centres, which are the first points. The new
 * centres go to out.
 */
#include "kernel.h"

#define CENTRES 8

struct centre {
	int32_t x, y;
	uint32_t count, sum_x, sum_y;
};

KERNEL(160)
{
	struct centre *centre = local_state;
	uint32_t moved = 0;

	if (size < 2 * CENTRES)
		return 0;
	for (unsigned k = 0; k < CENTRES; k++)
		centre[k] = (struct centre){ data[2 * k], data[2 * k + 1], 0, 0, 0 };
	for (uint64_t i = 0; i + 2 <= size; i += 2) {
		uint32_t least = UINT32_MAX;
		unsigned nearest = 0;

		for (unsigned k = 0; k < CENTRES; k++) {
			int32_t x = data[i] - centre[k].x, y = data[i + 1] - centre[k].y;
			uint32_t distance = (uint32_t)(x * x + y * y);

			nearest = distance < least ? k : nearest;
			least = distance < least ? distance : least;
		}
		centre[nearest].count++;
		centre[nearest].sum_x += data[i];
		centre[nearest].sum_y += data[i + 1];
	}
	for (unsigned k = 0; k < CENTRES; k++) {
		uint32_t n = centre[k].count ? centre[k].count : 1;

		out[2 * k] = (uint8_t)(centre[k].sum_x / n);
		out[2 * k + 1] = (uint8_t)(centre[k].sum_y / n);
		moved += out[2 * k] != data[2 * k] || out[2 * k + 1] != data[2 * k + 1];
	}
	return moved;
}
