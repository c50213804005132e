/* SPDX-License-Identifier: MIT */
// Products of 4x4 matrices.
// needs: nothing
#include "corpus.h"

STATE {
	int32_t product[4][4];
	int64_t trace;
};

PROBE("libGL!glLoadMatrixf")
{
	int16_t a[4][4], b[4][4];

	if (READ(a, event->arg[1]) || READ(b, event->arg[1] + sizeof(a)))
		return;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			int64_t sum = 0;

			for (int k = 0; k < 4; k++)
				sum += (int64_t)a[i][k] * b[k][j];
			state->product[i][j] = (int32_t)sum;
		}
	for (int i = 0; i < 4; i++)
		state->trace += state->product[i][i];
}
