/* SPDX-License-Identifier: MIT */
// Lengths of strings, by looking for the zero byte eight bytes at a time.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t length[65];
};

PROBE("libc!puts")
{
	uint64_t words[8];

	if (READ(words, event->arg[1]))
		return;
	for (unsigned i = 0; i < 8; i++) {
		uint64_t zero = (words[i] - UINT64_C(0x0101010101010101)) & ~words[i] & UINT64_C(0x8080808080808080);

		if (zero) {
			state->length[i * 8 + (unsigned)__builtin_ctzll(zero) / 8]++;
			return;
		}
	}
	state->length[64]++;
}
