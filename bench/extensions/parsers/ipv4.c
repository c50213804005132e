/* SPDX-License-Identifier: MIT */
/* IPv4: the header's checksum over 20 to 60 bytes, options walked; protocol and payload length. */
#include "packet.h"

KERNEL(0)
{
	uint32_t sum = 0, total, options = 0;
	uint64_t header, at;

	if (size < 20 || data[0] >> 4 != 4)
		return 0;
	header = (data[0] & 15u) * 4u;
	total = be16(data + 2);
	if (header < 20 || header > size || total < header || total > size)
		return 0;
	for (at = 0; at + 2 <= header; at += 2)
		sum += be16(data + at);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	if (sum != 0xffff)
		return 1;
	for (at = 20; at < header;) {
		uint8_t kind = data[at];

		if (!kind)
			break;
		options++;
		if (kind == 1) {
			at++;
			continue;
		}
		if (at + 2 > header || data[at + 1] < 2)
			return 2;
		at += data[at + 1];
	}
	return data[9] << 24 | options << 16 | (total - (uint32_t)header);
}
