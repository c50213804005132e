/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4). The hash goes to out. */
#include "kernel.h"

static const uint32_t round_constant[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

struct sha256 {
	uint32_t hash[8], w[64];
	uint8_t last[64];
};

static inline __attribute__((always_inline)) void block(struct sha256 *s, const uint8_t *data)
{
	uint32_t a = s->hash[0], b = s->hash[1], c = s->hash[2], d = s->hash[3], e = s->hash[4],
		 f = s->hash[5], g = s->hash[6], h = s->hash[7];

	for (unsigned i = 0; i < 16; i++)
		s->w[i] = __builtin_bswap32(load32(data + 4 * i));
	for (unsigned i = 16; i < 64; i++) {
		uint32_t x = s->w[i - 15], y = s->w[i - 2];

		s->w[i] = s->w[i - 16] + s->w[i - 7] + (rotate(x, 25) ^ rotate(x, 14) ^ x >> 3) +
			  (rotate(y, 15) ^ rotate(y, 13) ^ y >> 10);
	}
	for (unsigned i = 0; i < 64; i++) {
		uint32_t t = h + (rotate(e, 26) ^ rotate(e, 21) ^ rotate(e, 7)) +
			     ((e & f) ^ (~e & g)) + round_constant[i] + s->w[i];
		uint32_t u = (rotate(a, 30) ^ rotate(a, 19) ^ rotate(a, 10)) +
			     ((a & b) ^ (a & c) ^ (b & c));

		h = g;
		g = f;
		f = e;
		e = d + t;
		d = c;
		c = b;
		b = a;
		a = t + u;
	}
	s->hash[0] += a;
	s->hash[1] += b;
	s->hash[2] += c;
	s->hash[3] += d;
	s->hash[4] += e;
	s->hash[5] += f;
	s->hash[6] += g;
	s->hash[7] += h;
}

KERNEL(352)
{
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	struct sha256 *s = local_state;
	uint64_t i = 0, bits = size * 8, ended = 0;

	for (unsigned k = 0; k < 8; k++)
		s->hash[k] = first[k];
	for (; i + 64 <= size; i += 64)
		block(s, data + i);
	for (unsigned k = 0; k < 64; k++) { /* less than 64 are left */
		uint8_t byte = 0;

		if (i < size) {
			byte = data[i++];
		} else if (!ended) {
			byte = 0x80;
			ended = 1;
		}
		s->last[k] = byte;
	}
	if (size % 64 > 55) {
		block(s, s->last);
		for (unsigned k = 0; k < 56; k++)
			s->last[k] = 0;
	}
	for (unsigned k = 0; k < 8; k++)
		s->last[56 + k] = (uint8_t)(bits >> (56 - 8 * k));
	block(s, s->last);
	for (unsigned k = 0; k < 8; k++) {
		uint32_t word = __builtin_bswap32(s->hash[k]);

		__builtin_memcpy(out + 4 * k, &word, 4);
	}
	return s->hash[0];
}
