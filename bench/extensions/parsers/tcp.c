/* SPDX-License-Identifier: MIT */
/* TCP: the options of a segment; its largest segment size, window scale, and timestamps. */
#include "packet.h"

KERNEL(0)
{
	uint32_t mss = 536, scale = 0, stamp = 0;
	uint64_t header, at = 20;

	if (size < 20)
		return 0;
	header = (data[12] >> 4) * 4u;
	if (header < 20 || header > size)
		return 0;
	while (at < header) {
		uint8_t kind = data[at], length;

		if (kind == 0)
			break;
		if (kind == 1) {
			at++;
			continue;
		}
		if (at + 2 > header)
			return 1;
		length = data[at + 1];
		if (length < 2 || at + length > header)
			return 1;
		if (kind == 2 && length == 4 && at + 4 <= header)
			mss = be16(data + at + 2);
		else if (kind == 3 && length == 3 && at + 3 <= header)
			scale = data[at + 2];
		else if (kind == 8 && length == 10 && at + 10 <= header)
			stamp = be32(data + at + 2);
		at += length;
	}
	return stamp ^ (mss << 8 | scale);
}
