/* SPDX-License-Identifier: MIT */
// Knuth, Morris and Pratt's search with a constant failure table.
// needs: nothing
#include "corpus.h"

static const char word[8] = "abacabad";
static const uint8_t failure[8] = {0, 0, 1, 0, 1, 2, 3, 0};

STATE {
	uint64_t found;
};

PROBE("libc!write")
{
	char b[100];
	unsigned matched = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++) {
		while (matched > 0 && b[i] != word[matched & 7])
			matched = failure[(matched - 1) & 7];
		if (b[i] == word[matched & 7])
			matched++;
		if (matched == 8) {
			state->found++;
			matched = 0;
		}
	}
}
