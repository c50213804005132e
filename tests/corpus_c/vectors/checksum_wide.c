/* SPDX-License-Identifier: MIT */
// Four 32-bit sums side by side, rotated and added: vectorised where the machine allows.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint32_t lane[4];
	uint32_t total;
};

PROBE("libc!write")
{
	uint32_t words[64];

	if (READ(words, event->arg[1]))
		return;
	for (int i = 0; i < 64; i += 4)
		for (int k = 0; k < 4; k++)
			state->lane[k] = (state->lane[k] << 5 | state->lane[k] >> 27) + words[i + k];
	state->total = state->lane[0] ^ state->lane[1] ^ state->lane[2] ^ state->lane[3];
}
