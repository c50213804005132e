/* SPDX-License-Identifier: MIT */
// RC4's key schedule and sixteen bytes of its stream.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t s[256];
	uint8_t out[16];
};

PROBE("libcrypto!RC4_set_key")
{
	uint8_t i = 0, j = 0;

	for (unsigned n = 0; n < 256; n++)
		state->s[n] = (uint8_t)n;
	for (unsigned n = 0; n < 256; n++) {
		uint8_t t = state->s[n];

		j = (uint8_t)(j + t + (uint8_t)(event->arg[3] >> 8 * (n & 7)));
		state->s[n] = state->s[j];
		state->s[j] = t;
	}
	j = 0;
	for (unsigned n = 0; n < 16; n++) {
		uint8_t t;

		i++;
		j = (uint8_t)(j + state->s[i]);
		t = state->s[i];
		state->s[i] = state->s[j];
		state->s[j] = t;
		state->out[n] = state->s[(uint8_t)(state->s[i] + state->s[j])];
	}
}
