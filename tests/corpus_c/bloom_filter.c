/* SPDX-License-Identifier: MIT */
// Whether a key was seen before, by a Bloom filter of 2048 bits and four hashes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t bits[32];
	uint64_t fresh, repeated;
};

PROBE("libc!write")
{
	uint64_t h = event->arg[3] * UINT64_C(0xbf58476d1ce4e5b9);
	bool seen = true;

	h ^= h >> 31;
	for (unsigned i = 0; i < 4; i++) {
		unsigned bit = (unsigned)(h >> (11 * i)) & 2047;
		uint64_t mask = UINT64_C(1) << (bit & 63);

		if (!(state->bits[bit >> 6] & mask))
			seen = false;
		state->bits[bit >> 6] |= mask;
	}
	if (seen)
		state->repeated++;
	else
		state->fresh++;
}
