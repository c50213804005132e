/* SPDX-License-Identifier: MIT */
// wc: lines, words, bytes of what is written.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t lines, words, bytes;
};

PROBE("libc!write")
{
	char b[200];
	uint64_t length = event->arg[2] < sizeof(b) ? event->arg[2] : sizeof(b);
	bool inside = false;

	if (READ(b, event->arg[1]))
		return;
	for (uint64_t i = 0; i < length; i++) {
		bool space = b[i] == ' ' || (b[i] >= '\t' && b[i] <= '\r');

		if (b[i] == '\n')
			state->lines++;
		if (!space && !inside)
			state->words++;
		inside = !space;
	}
	state->bytes += length;
}
