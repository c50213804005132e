/* SPDX-License-Identifier: MIT */
// An exponentially weighted moving average in fixed point, 1/16 a step.
// needs: nothing
#include "corpus.h"

STATE {
	int64_t average; /* times 256 */
	int64_t deviation;
	uint64_t outliers;
};

PROBE("libc!write")
{
	int64_t value = (int64_t)(event->arg[2] & 0xffffff) * 256;
	int64_t error = value - state->average;
	int64_t size = error < 0 ? -error : error;

	if (size > 4 * state->deviation)
		state->outliers++;
	state->average += error / 16;
	state->deviation += (size - state->deviation) / 16;
}
