/* SPDX-License-Identifier: MIT */
// Powers modulo a 32-bit prime, square and multiply.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t last;
	uint64_t sum;
};

PROBE("libc!write")
{
	uint64_t base = event->arg[3] % 4294967291u, result = 1;
	uint32_t exponent = (uint32_t)event->arg[2];

	for (int bit = 0; bit < 32; bit++) {
		if (exponent >> bit & 1)
			result = result * base % 4294967291u;
		base = base * base % 4294967291u;
	}
	state->last = (uint32_t)result;
	state->sum += result;
}
