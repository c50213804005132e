/* SPDX-License-Identifier: MIT */
// The same without the check: only the guard keeps it inside.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint32_t buckets[64];
};

PROBE("libc!write")
{
	double x = (double)(uint32_t)event->arg[3];

	state->buckets[(uint32_t)(x / 67108864.0) & 63]++;
}
