/* SPDX-License-Identifier: MIT */
// Least squares of the length on the descriptor, recomputed at every call.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	double n, sx, sy, sxx, sxy, slope, offset;
};

PROBE("libc!write")
{
	double x = (double)(event->arg[0] & 1023), y = (double)(event->arg[2] & 0xfffff), d;

	state->n += 1;
	state->sx += x;
	state->sy += y;
	state->sxx += x * x;
	state->sxy += x * y;
	d = state->n * state->sxx - state->sx * state->sx;
	if (d > 0.5) {
		state->slope = (state->n * state->sxy - state->sx * state->sy) / d;
		state->offset = (state->sy - state->slope * state->sx) / state->n;
	}
}
