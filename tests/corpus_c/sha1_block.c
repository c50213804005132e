/* SPDX-License-Identifier: MIT */
// SHA-1 of one block, with the message schedule in a ring of 16 words.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t h[5];
};

static inline uint32_t rol(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

PROBE("libc!write")
{
	uint32_t w[16], a, b, c, d, e;
	uint8_t block[64];

	if (READ(block, event->arg[1]))
		return;
	for (unsigned i = 0; i < 16; i++)
		w[i] = get_be32(block + 4 * i);
	a = state->h[0] ^ 0x67452301;
	b = state->h[1] ^ 0xefcdab89;
	c = state->h[2] ^ 0x98badcfe;
	d = state->h[3] ^ 0x10325476;
	e = state->h[4] ^ 0xc3d2e1f0;
	for (unsigned i = 0; i < 80; i++) {
		uint32_t f, k, t;

		if (i >= 16)
			w[i & 15] = rol(w[(i - 3) & 15] ^ w[(i - 8) & 15] ^ w[(i - 14) & 15] ^ w[i & 15], 1);
		if (i < 20)
			f = (b & c) | (~b & d), k = 0x5a827999;
		else if (i < 40)
			f = b ^ c ^ d, k = 0x6ed9eba1;
		else if (i < 60)
			f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
		else
			f = b ^ c ^ d, k = 0xca62c1d6;
		t = rol(a, 5) + f + e + k + w[i & 15];
		e = d;
		d = c;
		c = rol(b, 30);
		b = a;
		a = t;
	}
	state->h[0] += a;
	state->h[1] += b;
	state->h[2] += c;
	state->h[3] += d;
	state->h[4] += e;
}
