/* SPDX-License-Identifier: MIT */
// The median of 15 values by quickselect with explicit bounds.
// needs: guard (the partition's bounds move with the data)
#include "corpus.h"

STATE {
	uint32_t median;
	uint32_t rounds;
};

PROBE("libc!write")
{
	uint32_t v[15];
	int low = 0, high = 14;

	if (READ(v, event->arg[1]))
		return;
	for (int round = 0; round < 15 && low < high; round++) {
		uint32_t pivot = v[(low + high) / 2];
		int i = low, j = high;

		for (int steps = 0; steps < 15 && i <= j; steps++) {
			while (i < 14 && v[i] < pivot)
				i++;
			while (j > 0 && v[j] > pivot)
				j--;
			if (i <= j) {
				uint32_t t = v[i];

				v[i] = v[j];
				v[j] = t;
				i++;
				j--;
			}
		}
		if (j < 7)
			low = i;
		if (i > 7)
			high = j;
		state->rounds++;
		if (low < 0 || high > 14)
			return;
	}
	state->median = v[7];
}
