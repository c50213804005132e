/* SPDX-License-Identifier: MIT */
/* Divisors of 8 and 16 bits that are tested for zero as what they are, and signed ones. */
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t byte;
	int8_t signed_byte;
	uint16_t half;
	int16_t signed_half;
	uint64_t sum, remainders;
};

static inline uint64_t quotient(uint64_t x, uint64_t y)
{
	return y ? x / y : x;
}

static inline int64_t signed_remainder(int64_t x, int64_t y)
{
	return y > 1 ? x % y : x;
}

PROBE("libc!write")
{
	uint64_t x = event->arg[2], y = event->arg[3];

	state->sum += quotient((uint8_t)x, (uint16_t)(state->half * y)) + quotient(x, (uint64_t)(int64_t)(int8_t)(state->byte ^ 3));
	state->remainders ^= (uint64_t)signed_remainder((int64_t)(x ^ y), state->half);
	state->remainders += (uint64_t)signed_remainder((int64_t)y, (int8_t)(state->signed_byte - 7));
	state->signed_half = (int16_t)quotient(0x7fffffff, (uint32_t)(state->byte ? state->signed_half : 9));
	state->byte += (uint8_t)y;
	state->signed_byte = (int8_t)(state->signed_byte ^ (int8_t)x);
	state->half = (uint16_t)(state->half + x);
}
