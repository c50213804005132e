/* SPDX-License-Identifier: MIT */
/*
 * For filters of packets: from the Ethernet header to that of the transport. Everything is reached
 * by one offset from the packet's start, which is compared with its size before each access.
 */
#ifndef PACKET_H
#define PACKET_H

#include <stdint.h>

#include <fay/host/entry.h>

#define PARSE static inline __attribute__((always_inline))

enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, TAGS = 4, EXTENSIONS = 8 };

PARSE uint32_t be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

PARSE uint32_t be24(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

/* Ethernet with up to four tags (802.1Q, 802.1ad): where the payload begins, 0 if that is cut off.
 * *tag: the outermost VLAN, or 4096. */
PARSE uint64_t ethernet(const uint8_t *packet, uint64_t size, uint32_t *type, uint32_t *tag)
{
	uint64_t at = 12;

	*tag = 4096;
	if (size < 14)
		return 0;
	*type = be16(packet + at);
	for (unsigned tags = 0; tags < TAGS && (*type == 0x8100 || *type == 0x88a8); tags++) {
		if (at + 6 > size)
			return 0;
		if (!tags)
			*tag = be16(packet + at + 2) & 4095;
		at += 4;
		*type = be16(packet + at);
	}
	return at + 2;
}

/* IPv4 (RFC 791), of which later fragments have no transport header. */
PARSE uint64_t ipv4(const uint8_t *packet, uint64_t size, uint64_t at, uint32_t *protocol)
{
	uint64_t header;

	if (at + 20 > size || packet[at] >> 4 != 4)
		return 0;
	header = (packet[at] & 15u) * 4u;
	*protocol = packet[at + 9];
	return header < 20 || be16(packet + at + 6) & 0x1fff ? 0 : at + header;
}

/* IPv6 with extension headers (RFC 8200, 4). */
PARSE uint64_t ipv6(const uint8_t *packet, uint64_t size, uint64_t at, uint32_t *protocol)
{
	uint32_t next;

	if (at + 40 > size || packet[at] >> 4 != 6)
		return 0;
	next = packet[at + 6];
	at += 40;
	for (unsigned i = 0; i < EXTENSIONS; i++) {
		if (next != 0 && next != 43 && next != 44 && next != 51 && next != 60)
			break;
		if (at + 8 > size || (next == 44 && be16(packet + at + 2) & 0xfff8))
			return 0;
		if (next == 44)
			next = packet[at], at += 8;
		else if (next == 51)
			next = packet[at], at += (packet[at + 1] + 2u) * 4u;
		else
			next = packet[at], at += (packet[at + 1] + 1u) * 8u;
	}
	*protocol = next;
	return at;
}

/* Where the header of the transport begins; it may be cut off. 0: there is none. */
PARSE uint64_t transport(const uint8_t *packet, uint64_t size, uint32_t *protocol)
{
	uint32_t type = 0, tag;
	uint64_t at = ethernet(packet, size, &type, &tag);

	if (!at)
		return 0;
	return type == 0x0800   ? ipv4(packet, size, at, protocol)
	       : type == 0x86dd ? ipv6(packet, size, at, protocol)
				: 0;
}

#endif
