/* SPDX-License-Identifier: MIT */
/* Random numbers that are the same at each run: Marsaglia, "Xorshift RNGs" (2003), 64 bits. */
#ifndef FAY_TESTS_XORSHIFT_H
#define FAY_TESTS_XORSHIFT_H

#include <stdint.h>

/* The next number, which is the new *state; not 0. */
static inline uint64_t xorshift(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

#endif
