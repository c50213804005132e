/* SPDX-License-Identifier: MIT */
// How many bits a buffer would take in a fixed code, from a table of lengths.
// needs: nothing
#include "corpus.h"

static const uint8_t bits_of[32] = {3, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6,
				    7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8};

STATE {
	uint64_t bits, bytes, smaller;
};

PROBE("libz!deflate")
{
	uint8_t b[64];
	uint32_t bits = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++)
		bits += bits_of[b[i] >> 3];
	state->bits += bits;
	state->bytes += sizeof(b);
	if (bits < 8 * sizeof(b))
		state->smaller++;
}
