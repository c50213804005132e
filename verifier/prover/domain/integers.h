/* SPDX-License-Identifier: MIT */
/* Numbers wider than a word, and functions of integers that several files need. */
#ifndef FAY_VERIFIER_INTEGERS_H
#define FAY_VERIFIER_INTEGERS_H

#include <stdint.h>

typedef __int128 wide;
typedef unsigned __int128 uwide;

static inline uint64_t min_u(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t max_u(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
static inline int64_t min_s(int64_t a, int64_t b)
{
	return a < b ? a : b;
}
static inline int64_t max_s(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t gcd(uint64_t a, uint64_t b)
{
	if (a == 1 || b == 1) /* mostly */
		return 1;
	while (b) {
		uint64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

#endif
