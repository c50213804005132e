/* SPDX-License-Identifier: MIT */
// Quotients and remainders of signed numbers of four widths.
// needs: nothing
#include "corpus.h"

STATE {
	int64_t quotient, remainder;
	int32_t narrow;
	int16_t half;
	int8_t byte;
};

PROBE("libc!write")
{
	int64_t x = (int64_t)event->arg[3], y = (int64_t)event->arg[5] % 1000;

	if (y > 0) {
		state->quotient ^= x / y;
		state->remainder ^= x % y;
		state->narrow ^= (int32_t)x / (int32_t)y;
		state->half = (int16_t)(state->half ^ (int16_t)x / 7);
		state->byte = (int8_t)(state->byte ^ (int8_t)x % 10);
	}
}
