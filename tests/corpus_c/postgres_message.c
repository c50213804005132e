/* SPDX-License-Identifier: MIT */
// Messages of PostgreSQL's protocol: type and length, in a buffer of several.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t type[128];
	uint64_t bytes, cut;
};

PROBE("libpq!pqPutMsgEnd")
{
	uint8_t buffer[256];
	uint32_t at = 0;

	if (READ(buffer, event->arg[1]))
		return;
	for (int n = 0; n < 16; n++) {
		uint32_t length;

		if (at + 5 > sizeof(buffer)) {
			state->cut++;
			return;
		}
		length = get_be32(buffer + at + 1);
		if (length < 4 || length > 100000)
			return;
		state->type[buffer[at] & 127]++;
		state->bytes += length;
		at += 1 + length;
	}
}
