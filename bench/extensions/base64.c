/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648) with padding, to out: how many characters. */
#include "kernel.h"

static const uint8_t digits[64] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

KERNEL(0)
{
	uint64_t i = 0, to = 0;

	for (; i + 3 <= size && to + 4 <= room; i += 3, to += 4) {
		uint32_t w = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];

		out[to] = digits[w >> 18];
		out[to + 1] = digits[w >> 12 & 63];
		out[to + 2] = digits[w >> 6 & 63];
		out[to + 3] = digits[w & 63];
	}
	if (i < size && to + 4 <= room) {
		uint32_t second = i + 2 <= size ? data[i + 1] : 0;

		out[to] = digits[data[i] >> 2];
		out[to + 1] = digits[(data[i] & 3) << 4 | second >> 4];
		out[to + 2] = i + 2 <= size ? digits[(second & 15) << 2] : '=';
		out[to + 3] = '=';
		to += 4;
	}
	return to;
}
