/* SPDX-License-Identifier: MIT */
// A small LZ decoder: literals and (distance, length), both checked.
// needs: guard (the output position depends on the data)
#include "corpus.h"

STATE {
	uint8_t out[128];
	uint64_t bytes, bad;
};

PROBE("libz!inflate")
{
	uint8_t b[32];
	unsigned at = 0, to = 0;

	if (READ(b, event->arg[1]))
		return;
	while (at < sizeof(b)) {
		uint8_t c = b[at++];

		if (c < 0x80) {
			if (to >= sizeof(state->out))
				break;
			state->out[to++] = c;
			continue;
		}
		if (at >= sizeof(b))
			break;
		unsigned length = (c & 7u) + 2, distance = b[at++] % 64 + 1u;

		if (distance > to || to + length > sizeof(state->out)) {
			state->bad++;
			break;
		}
		for (unsigned n = 0; n < length; n++, to++)
			state->out[to] = state->out[to - distance];
	}
	state->bytes += to;
}
