/* SPDX-License-Identifier: MIT */
/*
 * SHA-256 (FIPS 180-4), so that a verdict is bound to exact bytes without a crypto library in the
 * trusted part. Plain and portable: an image of a few KiB costs microseconds. Test vectors in
 * tests/verifier/images/test_image.c.
 */
#include <string.h>

#include "sha256.h"

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4,
 * 4.2.2). */
static const uint32_t round_constants[64] = {
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

static uint32_t rotate_right(uint32_t x, unsigned by)
{
	return x >> by | x << (32 - by);
}

/* One round; what the standard calls a to h is v[at], v[at + 1], ... modulo 8, so that nothing
 * moves: `at` goes down by one a round. */
static inline void hash_round(uint32_t v[8], unsigned at, uint32_t constant)
{
	uint32_t a = v[at], b = v[(at + 1) & 7], c = v[(at + 2) & 7], e = v[(at + 4) & 7],
		 f = v[(at + 5) & 7], g = v[(at + 6) & 7];
	uint32_t t1 = v[(at + 7) & 7] +
		      (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
		      ((e & f) ^ (~e & g)) + constant;
	uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
		      ((a & b) ^ (a & c) ^ (b & c));

	v[(at + 3) & 7] += t1;
	v[(at + 7) & 7] = t1 + t2;
}

static void hash_block(uint32_t state[8], const uint8_t block[64])
{
	uint32_t w[64], v[8];

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (unsigned i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + w[i - 7] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
		       (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
	}
	memcpy(v, state, sizeof(v));
	for (unsigned i = 0; i < 64; i += 8) {
		hash_round(v, 0, round_constants[i] + w[i]);
		hash_round(v, 7, round_constants[i + 1] + w[i + 1]);
		hash_round(v, 6, round_constants[i + 2] + w[i + 2]);
		hash_round(v, 5, round_constants[i + 3] + w[i + 3]);
		hash_round(v, 4, round_constants[i + 4] + w[i + 4]);
		hash_round(v, 3, round_constants[i + 5] + w[i + 5]);
		hash_round(v, 2, round_constants[i + 6] + w[i + 6]);
		hash_round(v, 1, round_constants[i + 7] + w[i + 7]);
	}
	for (unsigned i = 0; i < 8; i++)
		state[i] += v[i];
}

void fay_sha256(const void *data, size_t size, uint8_t digest[32])
{
	uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	const uint8_t *bytes = data;
	uint8_t tail[128] = { 0 };
	size_t whole = size / 64 * 64, rest = size - whole, tail_size = rest < 56 ? 64 : 128;

	for (size_t at = 0; at < whole; at += 64)
		hash_block(state, bytes + at);
	if (rest)
		memcpy(tail, bytes + whole, rest);
	tail[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		tail[tail_size - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
	for (size_t at = 0; at < tail_size; at += 64)
		hash_block(state, tail + at);
	for (unsigned i = 0; i < 32; i++)
		digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
