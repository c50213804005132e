/* SPDX-License-Identifier: MIT */
/* Whether all is UTF-8 (RFC 3629): the number of characters, or 2^32 and where it is not. */
#include "kernel.h"

static int follows(uint8_t c)
{
	return (c & 0xc0) == 0x80;
}

KERNEL(0)
{
	uint64_t i = 0, characters = 0;

	while (i < size) {
		uint8_t c = data[i];

		if (c < 0x80) {
			i++;
		} else if (c >= 0xc2 && c < 0xe0 && i + 2 <= size && follows(data[i + 1])) {
			i += 2;
		} else if ((c & 0xf0) == 0xe0 && i + 3 <= size && follows(data[i + 1]) &&
			   follows(data[i + 2]) && (c != 0xe0 || data[i + 1] >= 0xa0) &&
			   (c != 0xed || data[i + 1] < 0xa0)) {
			i += 3;
		} else if (c >= 0xf0 && c < 0xf5 && i + 4 <= size && follows(data[i + 1]) &&
			   follows(data[i + 2]) && follows(data[i + 3]) &&
			   (c != 0xf0 || data[i + 1] >= 0x90) &&
			   (c != 0xf4 || data[i + 1] < 0x90)) {
			i += 4;
		} else {
			return (uint64_t)1 << 32 | i;
		}
		characters++;
	}
	return characters;
}
