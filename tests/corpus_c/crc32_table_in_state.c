/* SPDX-License-Identifier: MIT */
// CRC-32 with a table of 256 entries that the first event computes.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t table[256];
	uint32_t crc;
};

PROBE("libc!write")
{
	uint8_t b[64];
	uint32_t crc = ~0u;

	if (!state->table[1])
		for (unsigned n = 0; n < 256; n++) {
			uint32_t c = n;

			for (int bit = 0; bit < 8; bit++)
				c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
			state->table[n] = c;
		}
	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++)
		crc = state->table[(crc ^ b[i]) & 255] ^ crc >> 8;
	state->crc = ~crc;
}
