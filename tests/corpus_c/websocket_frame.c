/* SPDX-License-Identifier: MIT */
// WebSocket frames: opcode, length in three forms, unmasking of the payload.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t opcode[16], bytes, text_sum;
};

PROBE("libwebsockets!lws_write")
{
	uint8_t f[64];
	unsigned at = 2;
	uint64_t length;

	if (READ(f, event->arg[1]))
		return;
	length = f[1] & 127;
	if (length == 126) {
		length = get_be16(f + 2);
		at = 4;
	} else if (length == 127) {
		length = (uint64_t)get_be32(f + 2) << 32 | get_be32(f + 6);
		at = 10;
	}
	state->opcode[f[0] & 15]++;
	state->bytes += length;
	if (f[1] & 128) {
		const uint8_t *mask = f + at;

		at += 4;
		for (unsigned i = 0; i < 32 && i < length; i++)
			state->text_sum += f[at + i] ^ mask[i & 3];
	}
}
