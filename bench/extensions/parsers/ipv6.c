/* SPDX-License-Identifier: MIT */
/* IPv6: the chain of extension headers, down to the upper protocol and where it begins. */
#include "packet.h"

KERNEL(0)
{
	uint64_t at = 40;
	uint32_t next;

	if (size < 40 || data[0] >> 4 != 6)
		return 0;
	next = data[6];
	for (unsigned left = 16; left; left--) {
		if (next != 0 && next != 43 && next != 44 && next != 51 && next != 60)
			return next << 16 | (at & 0xffff);
		if (at + 8 > size)
			return 1;
		next = data[at];
		if (next == 44)
			at += 8;
		else if (next == 51)
			at += (data[at + 1] + 2u) * 4u;
		else
			at += (data[at + 1] + 1u) * 8u;
	}
	return 2;
}
