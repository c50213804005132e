/* SPDX-License-Identifier: MIT */
// Like HdrHistogram: 16 linear steps in every power of two, so that a size is known to 1/16.
// needs: nothing
#include "corpus.h"

enum { STEP_BITS = 4, STEPS = 1 << STEP_BITS, BUCKETS = (65 - STEP_BITS) * STEPS };

STATE {
	uint32_t bucket[BUCKETS];
	uint64_t count, sum;
};

static inline unsigned bucket_of(uint64_t value)
{
	unsigned exponent;

	if (value < STEPS)
		return (unsigned)value;
	exponent = 63u - (unsigned)__builtin_clzll(value);
	return (exponent - STEP_BITS + 1) * STEPS + (unsigned)(value >> (exponent - STEP_BITS) & (STEPS - 1));
}

PROBE("libc!write")
{
	uint64_t value = event->arg[2];

	state->bucket[bucket_of(value)]++;
	state->count++;
	state->sum += value;
}
