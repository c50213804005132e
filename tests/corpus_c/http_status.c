/* SPDX-License-Identifier: MIT */
// Status codes of HTTP answers, by class and for each code.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t class[6];
	uint32_t code[600];
	uint64_t not_http;
};

PROBE("libc!write")
{
	char line[16];
	unsigned code = 0;

	if (READ(line, event->arg[1]))
		return;
	if (__builtin_memcmp(line, "HTTP/1.", 7) || line[8] != ' ') {
		state->not_http++;
		return;
	}
	for (unsigned i = 9; i < 12; i++) {
		unsigned digit = (unsigned)(line[i] - '0');

		if (digit > 9)
			return;
		code = code * 10 + digit;
	}
	if (code >= 100 && code < 600) {
		state->code[code]++;
		state->class[code / 100]++;
	}
}
