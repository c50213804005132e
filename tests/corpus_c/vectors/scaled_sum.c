/* SPDX-License-Identifier: MIT */
// y = a x + y over 64 floats.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	float y[64];
};

PROBE("libblas!saxpy_")
{
	int8_t x[64];
	float a = (float)(event->arg[0] & 15) / 64;

	if (READ(x, event->arg[1]))
		return;
	for (int i = 0; i < 64; i++)
		state->y[i] = state->y[i] * 0.5f + a * (float)x[i];
}
