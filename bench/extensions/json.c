/* SPDX-License-Identifier: MIT */
/* The sum of all numbers behind "size": in JSON without blanks, modulo 2^32. */
#include "kernel.h"

KERNEL(0)
{
	const uint64_t key = 0x2273697a65223a; /* "size": */
	uint64_t last = 0;
	uint32_t sum = 0, number = 0, inside = 0;

	for (uint64_t i = 0; i < size; i++) {
		uint32_t digit = data[i] - (uint32_t)'0';

		if (inside && digit < 10) {
			number = number * 10 + digit;
		} else if (inside) {
			sum += number;
			number = inside = 0;
		}
		last = last << 8 | data[i];
		inside |= last << 8 == key << 8;
	}
	return sum;
}
