/* SPDX-License-Identifier: MIT */
// A uniform sample of 16 sizes from a stream of any length.
// needs: nothing
#include "corpus.h"

enum { K = 16 };

STATE {
	uint64_t sample[K];
	uint64_t seen, random;
};

static inline uint64_t next_random(uint64_t *s)
{
	uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

PROBE("libc!write")
{
	uint64_t n = state->seen++, at = n;

	if (n >= K)
		at = next_random(&state->random) % (n + 1);
	if (at < K)
		state->sample[at] = event->arg[2];
}
