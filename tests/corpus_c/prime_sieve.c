/* SPDX-License-Identifier: MIT */
// Primes below 512 in a bit map, made by the first event.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t composite[8];
	uint64_t primes, others;
};

PROBE("libc!write")
{
	unsigned n = (unsigned)event->arg[2] & 511;

	if (!state->composite[0]) {
		state->composite[0] = 3;
		for (unsigned p = 2; p < 23; p++)
			if (!(state->composite[p / 64] >> p % 64 & 1))
				for (unsigned m = p * p; m < 512; m += p)
					state->composite[m / 64] |= UINT64_C(1) << m % 64;
	}
	if (state->composite[n / 64] >> n % 64 & 1)
		state->others++;
	else
		state->primes++;
}
