/* SPDX-License-Identifier: MIT */
/*
 * An extension for packets.host: the destination port of an Ethernet frame with IPv4 and UDP, with
 * or without a VLAN tag; 0 if it is no such frame or cut off.
 */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 0);
FAY_ENTRY(udp_port);

static uint64_t be16(const uint8_t *at)
{
	return (uint64_t)at[0] << 8 | at[1];
}

uint64_t udp_port(const uint8_t *data, uint64_t size, void *state);
uint64_t udp_port(const uint8_t *data, uint64_t size, void *state __attribute__((unused)))
{
	uint64_t at = 14, type, header;

	if (size < 14)
		return 0;
	type = be16(data + 12);
	if (type == 0x8100) {
		if (size < 18)
			return 0;
		type = be16(data + 16);
		at = 18;
	}
	if (type != 0x0800 || size < at + 20 || data[at] >> 4 != 4)
		return 0;
	header = (data[at] & 15u) * 4u;
	if (header < 20 || data[at + 9] != 17 || (be16(data + at + 6) & 0x1fff))
		return 0;
	at += header;
	if (size < at + 8)
		return 0;
	return be16(data + at + 2);
}
