/* SPDX-License-Identifier: MIT */
// Counts a pattern of four bytes by Rabin and Karp's method.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t found, candidates;
};

PROBE("libc!write")
{
	static const uint8_t pattern[4] = {'o', 'm', 'e', ' '};
	uint8_t b[96];
	uint32_t want = 0, have = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < 4; i++) {
		want = want * 257 + pattern[i];
		have = have * 257 + b[i];
	}
	for (unsigned i = 4;; i++) {
		if (have == want) {
			state->candidates++;
			if (b[i - 4] == pattern[0] && b[i - 3] == pattern[1] && b[i - 2] == pattern[2] && b[i - 1] == pattern[3])
				state->found++;
		}
		if (i == sizeof(b))
			break;
		have = (have - b[i - 4] * (257u * 257 * 257)) * 257 + b[i];
	}
}
