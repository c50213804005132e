/* SPDX-License-Identifier: MIT */
// The angle of a vector by an odd polynomial, in degrees.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	float sum;
	uint32_t octant[8];
};

PROBE("libm!atan2")
{
	float y = (float)(int16_t)event->arg[3], x = (float)(int16_t)(event->arg[3] >> 16), ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), a, s, r;
	float most = ax > ay ? ax : ay, least = ax > ay ? ay : ax;

	a = most > 0 ? least / most : 0;
	s = a * a;
	r = ((-0.0464964749f * s + 0.15931422f) * s - 0.327622764f) * s * a + a;
	if (ay > ax)
		r = 1.57079637f - r;
	if (x < 0)
		r = 3.14159274f - r;
	if (y < 0)
		r = -r;
	state->sum = state->sum * 0.75f + r * 57.2957795f;
	state->octant[(int)((r + 3.15f) / 0.7875f) & 7]++;
}
