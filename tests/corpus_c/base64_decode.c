/* SPDX-License-Identifier: MIT */
// Base64 back to bytes, until the first character outside the alphabet.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t bytes[48];
	uint64_t decoded, stops;
};

static inline int value_of(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

PROBE("libc!write")
{
	uint8_t text[64];
	unsigned out = 0;

	if (READ(text, event->arg[1]))
		return;
	for (unsigned i = 0; i < 64; i += 4) {
		int a = value_of(text[i]), b = value_of(text[i + 1]), c = value_of(text[i + 2]), d = value_of(text[i + 3]);
		uint32_t v;

		if ((a | b | c | d) < 0) {
			state->stops++;
			return;
		}
		v = (uint32_t)(a << 18 | b << 12 | c << 6 | d);
		state->bytes[out++] = (uint8_t)(v >> 16);
		state->bytes[out++] = (uint8_t)(v >> 8);
		state->bytes[out++] = (uint8_t)v;
		state->decoded += 3;
	}
}
