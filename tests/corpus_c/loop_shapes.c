/* SPDX-License-Identifier: MIT */
// Loops that count up, down, by steps, by shifts, with break and continue, nested and after each other.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t up, down, steps, shifts, odd, nested, until;
};

PROBE("libc!write")
{
	unsigned n = (unsigned)event->arg[2] & 31;
	int i;

	for (unsigned k = 0; k < n; k++)
		state->up += k;
	for (unsigned k = n; k-- > 0;)
		state->down += k * k;
	for (unsigned k = 3; k < 100; k += 7)
		state->steps += k;
	for (unsigned k = 1; k && k < 5000; k *= 3)
		state->shifts ^= k;
	for (unsigned k = 0; k < 20; k++) {
		if (k & 1)
			continue;
		if (k > n)
			break;
		state->odd++;
	}
	for (unsigned a = 0; a < 5; a++)
		for (unsigned b = a; b < 5; b++)
			for (unsigned c = 0; c <= b; c++)
				state->nested += a ^ b ^ c;
	i = 0;
	do {
		state->until += (uint64_t)i;
		i += 2;
	} while (i < (int)n);
}
