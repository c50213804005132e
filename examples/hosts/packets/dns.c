/* SPDX-License-Identifier: MIT */
/* A filter: the type of the first question of a DNS query over UDP (RFC 1035, 4.1). */
#include "packet.h"

FAY_EXTENSION(1, 0);
FAY_ENTRY(dns);

uint64_t dns(const uint8_t *packet, uint64_t size);
uint64_t dns(const uint8_t *packet, uint64_t size)
{
	uint32_t protocol = 0;
	uint64_t at = transport(packet, size, &protocol);

	/* a query, not an answer, with a question */
	if (!at || protocol != PROTOCOL_UDP || at + 20 > size || be16(packet + at + 2) != 53 ||
	    packet[at + 10] & 0x80 || be16(packet + at + 12) == 0)
		return 0;
	at += 20;
	for (unsigned labels = 0; labels < 128; labels++) {
		if (at >= size || packet[at] & 0xc0)
			return 0;
		if (!packet[at])
			return at + 3 <= size ? be16(packet + at + 1) : 0;
		at += 1 + (uint64_t)packet[at];
	}
	return 0;
}
