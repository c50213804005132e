/* SPDX-License-Identifier: MIT */
/* CRC-32 (ISO-HDLC), a byte at a time by a table. */
#include "kernel.h"

static void make(uint32_t *table)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (unsigned k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
		table[i] = c;
	}
}

KERNEL(1024)
{
	uint32_t *table = local_state, crc = UINT32_MAX;

	if (!table[255])
		make(table);
	for (uint64_t i = 0; i < size; i++)
		crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
	return (uint32_t)~crc;
}
