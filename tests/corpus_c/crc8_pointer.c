/* SPDX-License-Identifier: MIT */
// CRC-8 with a pointer that runs to the end of the buffer.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t crc;
};

PROBE("libc!write")
{
	uint8_t b[24], crc = 0;

	if (READ(b, event->arg[1]))
		return;
	for (const uint8_t *p = b, *end = b + sizeof(b); p < end; p++) {
		crc ^= *p;
		for (int bit = 0; bit < 8; bit++)
			crc = (uint8_t)(crc & 0x80 ? crc << 1 ^ 7 : crc << 1);
	}
	state->crc = crc;
}
