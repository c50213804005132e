/* SPDX-License-Identifier: MIT */
// Hexadecimal chunk sizes of a chunked body.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t chunks, bytes, bad;
};

static inline int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

PROBE("libc!recv")
{
	uint8_t line[20];
	uint64_t size = 0;

	if (READ(line, event->arg[1]))
		return;
	for (unsigned i = 0; i < 17; i++) {
		int digit = hex_digit(line[i]);

		if (digit < 0) {
			if (i && line[i] == '\r') {
				state->chunks++;
				state->bytes += size;
			} else {
				state->bad++;
			}
			return;
		}
		size = size << 4 | (uint64_t)digit;
	}
	state->bad++;
}
