/* SPDX-License-Identifier: MIT */
// Base64 of 24 bytes into 32 characters, kept in state.
// needs: nothing
#include "corpus.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

STATE {
	char text[32];
	uint64_t pluses;
};

PROBE("libc!write")
{
	uint8_t b[24];

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0, o = 0; i < 24; i += 3, o += 4) {
		uint32_t v = (uint32_t)b[i] << 16 | (uint32_t)b[i + 1] << 8 | b[i + 2];

		state->text[o] = alphabet[v >> 18];
		state->text[o + 1] = alphabet[v >> 12 & 63];
		state->text[o + 2] = alphabet[v >> 6 & 63];
		state->text[o + 3] = alphabet[v & 63];
	}
	for (unsigned i = 0; i < 32; i++)
		state->pluses += state->text[i] == '+';
}
