/* SPDX-License-Identifier: MIT */
// The pieces of a writev: addresses and lengths, at most eight.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t calls, pieces, bytes, empty, first_bytes[256];
};

PROBE("libc!writev")
{
	struct { uint64_t base, length; } piece[8];
	unsigned count = (unsigned)event->arg[2] & 15;

	if (count > 8)
		count = 8;
	if (READ(piece, event->arg[1]))
		return;
	state->calls++;
	for (unsigned i = 0; i < count; i++) {
		uint8_t first;

		state->pieces++;
		if (!piece[i].length) {
			state->empty++;
			continue;
		}
		state->bytes += piece[i].length;
		if (!READ(first, event->arg[1] + i))
			state->first_bytes[first]++;
	}
}
