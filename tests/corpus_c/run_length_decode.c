/* SPDX-License-Identifier: MIT */
// Run-length decoding: pairs of count and byte, into 64 bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t plain[64];
	uint64_t bytes, cut;
};

PROBE("libc!write")
{
	uint8_t b[32];
	unsigned to = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i += 2) {
		unsigned run = b[i] & 15;

		if (run > sizeof(state->plain) - to) {
			state->cut++;
			break;
		}
		for (unsigned n = 0; n < run; n++)
			state->plain[to++] = b[i + 1];
	}
	state->bytes += to;
}
