/* SPDX-License-Identifier: MIT */
// One step of k-means over 16 points and four centres.
// needs: nothing
#include "corpus.h"

STATE {
	int32_t centre[4];
	uint32_t moved;
};

PROBE("libc!write")
{
	uint16_t point[16];
	int64_t sum[4] = {0};
	int32_t members[4] = {0};

	if (READ(point, event->arg[1]))
		return;
	for (unsigned i = 0; i < 16; i++) {
		unsigned best = 0;
		int32_t nearest = INT32_MAX;

		for (unsigned c = 0; c < 4; c++) {
			int32_t d = point[i] - state->centre[c] - (int32_t)c * 16384;

			d = d < 0 ? -d : d;
			if (d < nearest) {
				nearest = d;
				best = c;
			}
		}
		sum[best] += point[i];
		members[best]++;
	}
	for (unsigned c = 0; c < 4; c++)
		if (members[c]) {
			int32_t to = (int32_t)(sum[c] / members[c]) - (int32_t)c * 16384;

			state->moved += to != state->centre[c];
			state->centre[c] = to;
		}
}
