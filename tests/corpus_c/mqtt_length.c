/* SPDX-License-Identifier: MIT */
// MQTT's remaining length: seven bits a byte, at most four.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t type[16], bytes, too_long;
};

PROBE("libmosquitto!packet__write")
{
	uint8_t h[5];
	uint32_t length = 0;
	unsigned shift = 0;

	if (READ(h, event->arg[1]))
		return;
	for (unsigned i = 1; i < 5; i++) {
		length |= (uint32_t)(h[i] & 127) << shift;
		if (!(h[i] & 128)) {
			state->type[h[0] >> 4]++;
			state->bytes += length;
			return;
		}
		shift += 7;
	}
	state->too_long++;
}
