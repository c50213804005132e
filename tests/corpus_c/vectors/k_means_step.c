/* SPDX-License-Identifier: MIT */
// One step of k-means for points of four dimensions: the nearest of eight centres moves a little.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	float centre[8][4];
	uint32_t members[8];
};

PROBE("libml!add_point")
{
	uint8_t raw[4];
	float point[4], best = 1e30f;
	unsigned nearest = 0;

	if (READ(raw, event->arg[1]))
		return;
	for (int i = 0; i < 4; i++)
		point[i] = (float)raw[i];
	for (unsigned c = 0; c < 8; c++) {
		float distance = 0;

		for (int i = 0; i < 4; i++) {
			float d = point[i] - state->centre[c][i];

			distance += d * d;
		}
		if (distance < best) {
			best = distance;
			nearest = c;
		}
	}
	state->members[nearest & 7]++;
	for (int i = 0; i < 4; i++)
		state->centre[nearest & 7][i] += (point[i] - state->centre[nearest & 7][i]) * 0.125f;
}
