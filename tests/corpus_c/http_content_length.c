/* SPDX-License-Identifier: MIT */
// Finds "Content-Length:" in a header and sums what it says.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t bytes, found, missing;
};

PROBE("libc!recv")
{
	static const char name[] = "\ncontent-length:";
	char text[256];
	unsigned matched = 0;

	if (READ(text, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(text); i++) {
		char c = text[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c + 32);
		if (c == name[matched])
			matched++;
		else
			matched = c == '\n';
		if (matched == sizeof(name) - 1) {
			uint64_t value = 0;

			for (i++; i < sizeof(text) && text[i] == ' '; i++)
				;
			for (; i < sizeof(text) && text[i] >= '0' && text[i] <= '9'; i++)
				value = value * 10 + (uint64_t)(text[i] - '0');
			state->bytes += value;
			state->found++;
			return;
		}
	}
	state->missing++;
}
