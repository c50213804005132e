/* SPDX-License-Identifier: MIT */
// Keys and sections of an INI text, comments skipped.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t sections, keys, comments;
	uint32_t key_hash;
};

PROBE("libc!fgets")
{
	enum { START, COMMENT, SECTION, KEY, VALUE } mode = START;
	char t[128];

	if (READ(t, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(t); i++) {
		char c = t[i];

		if (c == '\n') {
			mode = START;
			continue;
		}
		switch (mode) {
		case START:
			if (c == '#' || c == ';') {
				mode = COMMENT;
				state->comments++;
			} else if (c == '[') {
				mode = SECTION;
				state->sections++;
			} else if (c != ' ') {
				mode = KEY;
				state->key_hash = (uint8_t)c;
			}
			break;
		case KEY:
			if (c == '=') {
				mode = VALUE;
				state->keys++;
			} else {
				state->key_hash = state->key_hash * 31 + (uint8_t)c;
			}
			break;
		default:
			break;
		}
	}
}
