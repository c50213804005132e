/* SPDX-License-Identifier: MIT */
// Buckets by the exponent of a float, which its bits show.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint32_t buckets[32];
};

PROBE("libc!write")
{
	float x = (float)event->arg[3];
	uint32_t bits;

	__builtin_memcpy(&bits, &x, 4);
	state->buckets[(bits >> 23) & 31]++;
}
