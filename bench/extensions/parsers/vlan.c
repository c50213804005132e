/* SPDX-License-Identifier: MIT */
/* Ethernet with up to four VLAN tags (802.1Q, 802.1ad): the type and where its payload begins. */
#include "packet.h"

KERNEL(0)
{
	uint64_t at = 12;
	uint32_t type;

	if (size < 14)
		return 0;
	type = be16(data + at);
	for (unsigned tags = 0; tags < 4 && (type == 0x8100 || type == 0x88a8); tags++) {
		if (at + 6 > size)
			return 0;
		at += 4;
		type = be16(data + at);
	}
	return type << 8 | (at + 2);
}
