/* SPDX-License-Identifier: MIT */
// Numbers of varying width, packed into a buffer of words.
// needs: guard (the position is kept in state)
#include "corpus.h"

STATE {
	uint64_t word[16];
	uint32_t position; /* in bits */
	uint64_t full;
};

PROBE("libc!write")
{
	uint64_t value = event->arg[2];
	unsigned width = 1 + (unsigned)(event->arg[0] & 31), at = state->position;

	if (at + width > 16 * 64) {
		state->full++;
		state->position = 0;
		return;
	}
	value &= (UINT64_C(1) << width) - 1;
	state->word[at / 64] = (state->word[at / 64] & ~(((UINT64_C(1) << width) - 1) << at % 64)) | value << at % 64;
	if (at % 64 + width > 64)
		state->word[at / 64 + 1] = value >> (64 - at % 64);
	state->position = at + width;
}
