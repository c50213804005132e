/* SPDX-License-Identifier: MIT */
/* DNS: the first question's type, and how long its name is; labels walked, pointers refused. */
#include "packet.h"

KERNEL(0)
{
	uint64_t at = 12;

	if (size < 12 || data[2] & 0x80 || be16(data + 4) == 0)
		return 0;
	for (unsigned labels = 0; labels < 128; labels++) {
		if (at >= size)
			return 0;
		if (!data[at])
			break;
		if (data[at] & 0xc0)
			return 1;
		at += 1 + (uint64_t)data[at];
	}
	if (at + 5 > size || data[at])
		return 0;
	return be16(data + at + 1) << 16 | ((at - 12) & 0xffff);
}
