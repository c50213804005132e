/* SPDX-License-Identifier: MIT */
/* XXH32, seed 0. */
#include "kernel.h"

#define P1 0x9e3779b1u
#define P2 0x85ebca77u
#define P3 0xc2b2ae3du
#define P4 0x27d4eb2fu
#define P5 0x165667b1u

KERNEL(0)
{
	uint32_t a = P1 + P2, b = P2, c = 0, d = -P1, hash = P5;
	uint64_t i = 0;

	for (; i + 16 <= size; i += 16) {
		a = rotate(a + load32(data + i) * P2, 13) * P1;
		b = rotate(b + load32(data + i + 4) * P2, 13) * P1;
		c = rotate(c + load32(data + i + 8) * P2, 13) * P1;
		d = rotate(d + load32(data + i + 12) * P2, 13) * P1;
	}
	if (i)
		hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
	hash += (uint32_t)size;
	for (; i + 4 <= size; i += 4)
		hash = rotate(hash + load32(data + i) * P3, 17) * P4;
	for (; i < size; i++)
		hash = rotate(hash + data[i] * P5, 11) * P1;
	hash = (hash ^ hash >> 15) * P2;
	hash = (hash ^ hash >> 13) * P3;
	return hash ^ hash >> 16;
}
