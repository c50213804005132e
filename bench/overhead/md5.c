/* SPDX-License-Identifier: MIT */
/* MD5 (RFC 1321) of up to 16 blocks that lie in state. */
#include "kernel.h"

struct state {
	uint32_t digest[4];
	uint32_t word[16 * 16];
};

#define ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))
#define F(x, y, z) (((y) ^ (z)) & (x) ^ (z))
#define G(x, y, z) F(z, x, y)
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))
#define STEP(f, a, b, c, d, k, n, t) a = b + ROTATE(a + f(b, c, d) + x[k] + t, n);
/* clang-format off */
#define FOUR(f, i, j, k, l, r, s, t, u, v, w, y, z) \
	STEP(f, a, b, c, d, i, r, v) STEP(f, d, a, b, c, j, s, w) STEP(f, c, d, a, b, k, t, y) \
	STEP(f, b, c, d, a, l, u, z)
/* clang-format on */

KERNEL
{
	uint32_t a0 = 0x67452301, b0 = 0xefcdab89, c0 = 0x98badcfe, d0 = 0x10325476;
	uint64_t blocks = event->arg[0] < 16 ? event->arg[0] : 16;

	for (uint64_t block = 0; block < blocks; block++) {
		const uint32_t *x = &S.word[16 * block];
		uint32_t a = a0, b = b0, c = c0, d = d0;

		FOUR(F, 0, 1, 2, 3, 7, 12, 17, 22, 0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee)
		FOUR(F, 4, 5, 6, 7, 7, 12, 17, 22, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501)
		FOUR(F, 8, 9, 10, 11, 7, 12, 17, 22, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be)
		FOUR(F, 12, 13, 14, 15, 7, 12, 17, 22, 0x6b901122, 0xfd987193, 0xa679438e,
		     0x49b40821)
		FOUR(G, 1, 6, 11, 0, 5, 9, 14, 20, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa)
		FOUR(G, 5, 10, 15, 4, 5, 9, 14, 20, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8)
		FOUR(G, 9, 14, 3, 8, 5, 9, 14, 20, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed)
		FOUR(G, 13, 2, 7, 12, 5, 9, 14, 20, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a)
		FOUR(H, 5, 8, 11, 14, 4, 11, 16, 23, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c)
		FOUR(H, 1, 4, 7, 10, 4, 11, 16, 23, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70)
		FOUR(H, 13, 0, 3, 6, 4, 11, 16, 23, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05)
		FOUR(H, 9, 12, 15, 2, 4, 11, 16, 23, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665)
		FOUR(I, 0, 7, 14, 5, 6, 10, 15, 21, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039)
		FOUR(I, 12, 3, 10, 1, 6, 10, 15, 21, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1)
		FOUR(I, 8, 15, 6, 13, 6, 10, 15, 21, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1)
		FOUR(I, 4, 11, 2, 9, 6, 10, 15, 21, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391)
		a0 += a;
		b0 += b;
		c0 += c;
		d0 += d;
	}
	S.digest[0] = a0;
	S.digest[1] = b0;
	S.digest[2] = c0;
	S.digest[3] = d0;
}

SETUP
{
	event->arg[0] = 16;
	for (unsigned i = 0; i < 256; i++)
		setup_state->word[i] = setup_random(seed);
}
