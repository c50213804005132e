/* SPDX-License-Identifier: MIT */
/* CRC-32 (ISO-HDLC), a byte at a time by table, of as many bytes as the event says. */
#include "kernel.h"

struct state {
	uint32_t crc;
	uint32_t table[256];
	uint8_t byte[2048];
};

KERNEL
{
	uint32_t crc = ~S.crc;
	uint64_t size = event->arg[0] < sizeof(S.byte) ? event->arg[0] : sizeof(S.byte);

	for (uint64_t i = 0; i < size; i++)
		crc = crc >> 8 ^ S.table[(crc ^ S.byte[i]) & 255];
	S.crc = ~crc;
}

SETUP
{
	event->arg[0] = 2000;
	for (unsigned i = 0; i < 256; i++) {
		uint32_t c = i;

		for (unsigned k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
		setup_state->table[i] = c;
	}
	for (unsigned i = 0; i < 2048; i++)
		setup_state->byte[i] = (uint8_t)setup_random(seed);
}
