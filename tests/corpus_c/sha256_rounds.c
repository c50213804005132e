/* SPDX-License-Identifier: MIT */
// SHA-256's compression, 64 rounds over a ring of 16 words.
// needs: nothing
#include "corpus.h"

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

STATE {
	uint32_t h[8];
	uint64_t blocks;
};

static inline uint32_t ror(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

PROBE("libc!write")
{
	uint8_t block[64];
	uint32_t w[16], v[8];

	if (READ(block, event->arg[1]))
		return;
	for (unsigned i = 0; i < 16; i++)
		w[i] = get_be32(block + 4 * i);
	for (unsigned i = 0; i < 8; i++)
		v[i] = state->h[i];
	for (unsigned i = 0; i < 64; i++) {
		uint32_t t1, t2, s0, s1;

		if (i >= 16) {
			s0 = w[(i + 1) & 15];
			s1 = w[(i + 14) & 15];
			s0 = ror(s0, 7) ^ ror(s0, 18) ^ s0 >> 3;
			s1 = ror(s1, 17) ^ ror(s1, 19) ^ s1 >> 10;
			w[i & 15] += s0 + s1 + w[(i + 9) & 15];
		}
		t1 = v[7] + (ror(v[4], 6) ^ ror(v[4], 11) ^ ror(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i & 15];
		t2 = (ror(v[0], 2) ^ ror(v[0], 13) ^ ror(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		for (unsigned j = 7; j > 0; j--)
			v[j] = v[j - 1];
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (unsigned i = 0; i < 8; i++)
		state->h[i] += v[i];
	state->blocks++;
}
