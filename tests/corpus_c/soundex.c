/* SPDX-License-Identifier: MIT */
// Soundex codes of names, counted in a table.
// needs: nothing
#include "corpus.h"

static const char code_of[26] = {0, 1, 2, 3, 0, 1, 2, 0, 0, 2, 2, 4, 5, 5, 0, 1, 2, 6, 2, 3, 0, 1, 0, 2, 0, 2};

STATE {
	uint32_t by_code[26][7];
	uint64_t names;
};

PROBE("libc!getpwnam")
{
	uint8_t t[24];
	unsigned first, digits = 0, before = 0, last = 0;

	if (READ(t, event->arg[1]))
		return;
	first = (t[0] | 32u) - 'a';
	if (first > 25)
		return;
	for (unsigned i = 1; i < sizeof(t) && digits < 3; i++) {
		unsigned letter = (t[i] | 32u) - 'a', code;

		if (letter > 25)
			break;
		code = (unsigned)code_of[letter];
		if (code && code != before) {
			digits++;
			last = code;
		}
		before = code;
	}
	if (last < 7)
		state->by_code[first][last]++;
	state->names++;
}
