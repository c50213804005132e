/* SPDX-License-Identifier: MIT */
/* Filters: by the port that TCP segments and UDP datagrams are for, and by VLAN. */
#include "packet.h"

FAY_EXTENSION(3, 0);
FAY_ENTRY(tcp_port);
FAY_ENTRY(udp_port);
FAY_ENTRY(vlan);

uint64_t tcp_port(const uint8_t *packet, uint64_t size);
uint64_t udp_port(const uint8_t *packet, uint64_t size);
uint64_t vlan(const uint8_t *packet, uint64_t size);

PARSE uint64_t port(const uint8_t *packet, uint64_t size, uint32_t wanted)
{
	uint32_t protocol = 0;
	uint64_t at = transport(packet, size, &protocol);

	return at && protocol == wanted && at + 4 <= size ? be16(packet + at + 2) : 0;
}

uint64_t tcp_port(const uint8_t *packet, uint64_t size)
{
	return port(packet, size, PROTOCOL_TCP);
}

uint64_t udp_port(const uint8_t *packet, uint64_t size)
{
	return port(packet, size, PROTOCOL_UDP);
}

/* The number of the outermost tag, plus 1. */
uint64_t vlan(const uint8_t *packet, uint64_t size)
{
	uint32_t type, tag;

	return ethernet(packet, size, &type, &tag) && tag < 4096 ? tag + 1 : 0;
}
