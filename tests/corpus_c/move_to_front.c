/* SPDX-License-Identifier: MIT */
// Move-to-front coding of nibbles.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t rank[16];
};

PROBE("libbz2!BZ2_bzCompress")
{
	uint8_t b[32], order[16];

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < 16; i++)
		order[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(b); i++) {
		uint8_t symbol = b[i] & 15;
		unsigned at = 0;

		while (at < 15 && order[at] != symbol)
			at++;
		state->rank[at]++;
		for (; at > 0; at--)
			order[at] = order[at - 1];
		order[0] = symbol;
	}
}
