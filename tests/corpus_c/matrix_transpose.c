/* SPDX-License-Identifier: MIT */
// An 8x8 matrix of bytes, transposed in place.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t m[8][8];
	uint64_t symmetric;
};

PROBE("libc!write")
{
	bool symmetric = true;

	if (READ(state->m, event->arg[1]))
		return;
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = i + 1; j < 8; j++) {
			uint8_t t = state->m[i][j];

			symmetric &= t == state->m[j][i];
			state->m[i][j] = state->m[j][i];
			state->m[j][i] = t;
		}
	state->symmetric += symmetric;
}
