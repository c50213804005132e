/* SPDX-License-Identifier: MIT */
// Balanced brackets of three kinds, by a stack in one word.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t balanced, wrong, open, deepest;
};

PROBE("libjson-c!json_tokener_parse")
{
	char text[96];
	uint64_t stack = 0;
	unsigned depth = 0;

	if (READ(text, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(text); i++) {
		unsigned kind;

		switch (text[i]) {
		case '(': case '[': case '{':
			kind = text[i] == '(' ? 1 : text[i] == '[' ? 2 : 3;
			if (depth == 32)
				return;
			stack = stack << 2 | kind;
			if (++depth > state->deepest)
				state->deepest = depth;
			break;
		case ')': case ']': case '}':
			kind = text[i] == ')' ? 1 : text[i] == ']' ? 2 : 3;
			if (!depth || (stack & 3) != kind) {
				state->wrong++;
				return;
			}
			stack >>= 2;
			depth--;
			break;
		default:
			break;
		}
	}
	if (depth)
		state->open++;
	else
		state->balanced++;
}
