/* SPDX-License-Identifier: MIT */
// 4 by 4 matrices of floats: the state is multiplied by what the program passes, scaled down.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	float m[4][4];
	uint32_t calls;
};

PROBE("libGL!glMultMatrixf")
{
	int8_t raw[16];
	float a[4][4], r[4][4];

	if (READ(raw, event->arg[1]))
		return;
	if (state->calls++ % 8 == 0)
		for (int i = 0; i < 16; i++)
			state->m[i / 4][i % 4] = i % 5 == 0;
	for (int i = 0; i < 16; i++)
		a[i / 4][i % 4] = (float)raw[i] / 128;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			r[i][j] = 0;
			for (int k = 0; k < 4; k++)
				r[i][j] += state->m[i][k] * a[k][j];
		}
	for (int i = 0; i < 16; i++)
		state->m[i / 4][i % 4] = r[i / 4][i % 4] / 4;
}
