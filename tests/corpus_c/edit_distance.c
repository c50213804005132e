/* SPDX-License-Identifier: MIT */
// Levenshtein distance of two words of twelve letters, one row.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t distance[13];
};

PROBE("libc!strcmp")
{
	char a[12], b[12];
	uint8_t row[13];

	if (READ(a, event->arg[1]) || READ(b, event->arg[1] + 16))
		return;
	for (unsigned j = 0; j <= 12; j++)
		row[j] = (uint8_t)j;
	for (unsigned i = 1; i <= 12; i++) {
		uint8_t corner = row[0];

		row[0] = (uint8_t)i;
		for (unsigned j = 1; j <= 12; j++) {
			uint8_t cost = (uint8_t)(corner + (a[i - 1] != b[j - 1]));

			corner = row[j];
			if (row[j] + 1 < cost)
				cost = (uint8_t)(row[j] + 1);
			if (row[j - 1] + 1 < cost)
				cost = (uint8_t)(row[j - 1] + 1);
			row[j] = cost;
		}
	}
	if (row[12] <= 12)
		state->distance[row[12]]++;
}
