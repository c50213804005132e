/* SPDX-License-Identifier: MIT */
// Tokens of a JSON text, with strings and escapes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t strings, escapes, numbers, structure, literals, other;
};

PROBE("libjson-c!json_tokener_parse")
{
	char t[128];
	unsigned at = 0;

	if (READ(t, event->arg[1]))
		return;
	while (at < sizeof(t)) {
		char c = t[at++];

		if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
			continue;
		if (c == '"') {
			while (at < sizeof(t) && t[at] != '"') {
				if (t[at] == '\\') {
					state->escapes++;
					at++;
				}
				at++;
			}
			at++;
			state->strings++;
		} else if (c == '-' || (c >= '0' && c <= '9')) {
			while (at < sizeof(t) && ((t[at] >= '0' && t[at] <= '9') || t[at] == '.' || t[at] == 'e'))
				at++;
			state->numbers++;
		} else if (c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',') {
			state->structure++;
		} else if (c >= 'a' && c <= 'z') {
			while (at < sizeof(t) && t[at] >= 'a' && t[at] <= 'z')
				at++;
			state->literals++;
		} else {
			state->other++;
		}
	}
}
