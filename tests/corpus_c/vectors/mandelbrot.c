/* SPDX-License-Identifier: MIT */
// Steps until z escapes, for a point that the arguments give.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint32_t steps[16];
	double last;
};

PROBE("libc!write")
{
	double cr = (double)(int16_t)event->arg[3] / 16384, ci = (double)(int16_t)(event->arg[3] >> 16) / 16384, zr = 0, zi = 0;
	unsigned n = 0;

	for (int i = 0; i < 50; i++) {
		double r2 = zr * zr, i2 = zi * zi;

		if (r2 + i2 > 4)
			break;
		zi = 2 * zr * zi + ci;
		zr = r2 - i2 + cr;
		n++;
	}
	state->steps[n / 4 & 15]++;
	state->last = zr;
}
