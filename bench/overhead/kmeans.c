/* SPDX-License-Identifier: MIT */
/* One step of k-means (Lloyd, 1957) in integers: 256 points of 4 dimensions, 8 centres. */
#include "kernel.h"

#define POINTS 256
#define CENTRES 8
#define DIMENSIONS 4

struct state {
	int32_t point[POINTS][DIMENSIONS];
	int32_t centre[CENTRES][DIMENSIONS];
	int64_t sum[CENTRES][DIMENSIONS];
	uint32_t members[CENTRES];
	uint8_t nearest[POINTS];
};

KERNEL
{
	for (unsigned p = 0; p < POINTS; p++) {
		uint64_t best = UINT64_MAX;
		unsigned nearest = 0;

		for (unsigned c = 0; c < CENTRES; c++) {
			uint64_t distance = 0;

			for (unsigned d = 0; d < DIMENSIONS; d++) {
				int64_t difference = (int64_t)S.point[p][d] - S.centre[c][d];

				distance += (uint64_t)(difference * difference);
			}
			if (distance < best) {
				best = distance;
				nearest = c;
			}
		}
		S.nearest[p] = (uint8_t)nearest;
		S.members[nearest]++;
		for (unsigned d = 0; d < DIMENSIONS; d++)
			S.sum[nearest][d] += S.point[p][d];
	}
	for (unsigned c = 0; c < CENTRES; c++)
		if (S.members[c])
			for (unsigned d = 0; d < DIMENSIONS; d++)
				S.centre[c][d] = (int32_t)(S.sum[c][d] / (int64_t)S.members[c]);
}

SETUP
{
	event->arg[0] = POINTS;
	for (unsigned i = 0; i < POINTS * DIMENSIONS; i++)
		setup_state->point[0][i] = (int32_t)(setup_random(seed) % 20000) - 10000;
	for (unsigned i = 0; i < CENTRES * DIMENSIONS; i++) {
		setup_state->centre[0][i] = (int32_t)(setup_random(seed) % 20000) - 10000;
		setup_state->sum[0][i] = 0;
	}
	for (unsigned i = 0; i < CENTRES; i++)
		setup_state->members[i] = 0;
}
