/* SPDX-License-Identifier: MIT */
/* TLS ClientHello (RFC 8446, 4.1.2; RFC 6066, 3): where the server's name lies, its length. */
#include "packet.h"

static uint64_t name(const uint8_t *data, uint64_t at, uint64_t end)
{
	uint64_t stop;

	if (at + 5 > end || data[at + 2] != 0)
		return 0;
	stop = at + 5 + be16(data + at + 3);
	return stop > end ? 0 : ((at + 5) << 16 | be16(data + at + 3)) & 0xffffffff;
}

KERNEL(0)
{
	uint64_t at, end;

	/* a record of a handshake, its first message a ClientHello */
	if (size < 44 || data[0] != 22 || data[1] != 3 || data[5] != 1)
		return 0;
	end = 9 + (uint64_t)be24(data + 6);
	if (end > size)
		return 0;
	at = 43; /* version and random number */
	if (at + 1 > end)
		return 0;
	at += 1 + (uint64_t)data[at]; /* session */
	if (at + 2 > end)
		return 0;
	at += 2 + (uint64_t)be16(data + at); /* ciphers */
	if (at + 1 > end)
		return 0;
	at += 1 + (uint64_t)data[at]; /* compression */
	if (at + 2 > end)
		return 0;
	at += 2;
	while (at + 4 <= end) {
		uint32_t type = be16(data + at), length = be16(data + at + 2);

		at += 4;
		if (at + length > end)
			return 0;
		if (type == 0)
			return name(data, at, at + length);
		at += length;
	}
	return 0;
}
