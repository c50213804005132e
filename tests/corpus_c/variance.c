/* SPDX-License-Identifier: MIT */
// Mean and variance by Welford's method in integers.
// needs: nothing
#include "corpus.h"

STATE {
	int64_t n, mean, squares; /* mean times 256 */
};

PROBE("libc!write")
{
	int64_t x = (int64_t)(event->arg[2] & 0xfffff) << 8, d, e;

	if (state->n >= 1000000 || state->n < 0)
		state->n = 0;
	state->n++;
	d = x - state->mean;
	state->mean += d / state->n;
	e = x - state->mean;
	state->squares += (d >> 8) * (e >> 8);
}
