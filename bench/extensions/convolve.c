/* SPDX-License-Identifier: MIT */
/* A picture of 128 columns, blurred by a kernel of three by three to out, but for its border. */
#include "kernel.h"

#define COLUMNS 128

KERNEL(0)
{
	uint32_t sum = 0;

	for (uint64_t i = 0; i + 2 * COLUMNS + 3 <= size && i < room; i++) {
		const uint8_t *up = data + i, *at = up + COLUMNS, *down = at + COLUMNS;
		uint32_t v = up[0] + 2u * up[1] + up[2] + 2u * at[0] + 4u * at[1] + 2u * at[2] +
			     down[0] + 2u * down[1] + down[2];

		out[i] = (uint8_t)(v / 16);
		sum += v / 16;
	}
	return sum;
}
