/* SPDX-License-Identifier: MIT */
// Square roots by Newton's method beside the instruction's.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	double by_newton, by_instruction, worst;
};

PROBE("libm!sqrt")
{
	double x = (double)(event->arg[2] & 0xffffff) + 1, r = x;

	for (int i = 0; i < 24; i++)
		r = 0.5 * (r + x / r);
	state->by_newton = r;
	state->by_instruction = __builtin_sqrt(x);
	if (__builtin_fabs(r - state->by_instruction) > state->worst)
		state->worst = __builtin_fabs(r - state->by_instruction);
}
