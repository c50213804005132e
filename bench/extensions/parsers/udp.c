/* SPDX-License-Identifier: MIT */
/* UDP in IPv4 or IPv6 in Ethernet: ports and payload length, if the lengths agree. */
#include "packet.h"

KERNEL(0)
{
	uint64_t at = 14;
	uint32_t type, length;

	if (size < 14)
		return 0;
	type = be16(data + 12);
	if (type == 0x8100) {
		if (size < 18)
			return 0;
		type = be16(data + 16);
		at = 18;
	}
	if (type == 0x0800) {
		uint64_t header;

		if (at + 20 > size || data[at] >> 4 != 4)
			return 0;
		header = (data[at] & 15u) * 4u;
		if (header < 20 || data[at + 9] != 17)
			return 0;
		at += header;
	} else if (type == 0x86dd) {
		if (at + 40 > size || data[at + 6] != 17)
			return 0;
		at += 40;
	} else {
		return 0;
	}
	if (at + 8 > size)
		return 0;
	length = be16(data + at + 4);
	if (length < 8 || at + length > size)
		return 1;
	return be16(data + at) << 16 | be16(data + at + 2);
}
