/* SPDX-License-Identifier: MIT */
// The most frequent letter of a text, and the shift that makes it an e.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t letter[26];
	uint8_t shift;
};

PROBE("libc!write")
{
	uint8_t t[100];
	unsigned best = 0;

	if (READ(t, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(t); i++) {
		unsigned letter = (t[i] | 32u) - 'a';

		if (letter < 26)
			state->letter[letter]++;
	}
	for (unsigned i = 1; i < 26; i++)
		if (state->letter[i] > state->letter[best])
			best = i;
	state->shift = (uint8_t)((best + 26 - ('e' - 'a')) % 26);
}
