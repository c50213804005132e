/* SPDX-License-Identifier: MIT */
/* A block of LZ4, decoded to out: how many bytes. Ends early where it is none, or room ends. */
#include "kernel.h"

KERNEL(0)
{
	uint64_t i = 0, to = 0;

	/* each sequence has a byte at least: with a counter the loop's bound is found */
	for (uint64_t left = 1 << 20; left && i < size; left--) {
		uint64_t token = data[i++], n = token >> 4, back;

		if (n == 15)
			while (i < size) {
				uint8_t more = data[i++];

				n += more;
				if (more != 255)
					break;
			}
		while (n && i < size && to < room) {
			out[to++] = data[i++];
			n--;
		}
		if (n || i + 2 > size)
			break;
		back = data[i] | (uint64_t)data[i + 1] << 8;
		i += 2;
		if (back > to)
			break;
		n = (token & 15) + 4;
		if (n == 19)
			while (i < size) {
				uint8_t more = data[i++];

				n += more;
				if (more != 255)
					break;
			}
		while (n && to < room) {
			out[to] = out[to - back];
			to++;
			n--;
		}
		if (n || !back) /* 0 is no distance */
			break;
	}
	return to;
}
