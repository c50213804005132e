/* SPDX-License-Identifier: MIT */
// Gray code there and back.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t wrong, flips;
	uint64_t before;
};

PROBE("libc!write")
{
	uint64_t x = event->arg[3], gray = x ^ x >> 1, back = gray;

	for (unsigned shift = 1; shift < 64; shift <<= 1)
		back ^= back >> shift;
	if (back != x)
		state->wrong++;
	state->flips += (uint64_t)__builtin_popcountll(gray ^ state->before);
	state->before = gray;
}
