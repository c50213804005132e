/* SPDX-License-Identifier: MIT */
// Adler-32 over 256 bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t sum;
};

PROBE("libz!deflate")
{
	uint8_t b[256];
	uint32_t a = 1, s = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++) {
		a = (a + b[i]) % 65521;
		s = (s + a) % 65521;
	}
	state->sum = s << 16 | a;
}
