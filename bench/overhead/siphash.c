/* SPDX-License-Identifier: MIT */
/* SipHash-2-4 (Aumasson and Bernstein, 2012) of as many bytes as the event says. */
#include "kernel.h"

#define WORDS 256

struct state {
	uint64_t key[2], hash;
	uint64_t word[WORDS];
};

#define ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))
#define ROUND                                                                                      \
	do {                                                                                       \
		v0 += v1;                                                                          \
		v1 = ROTATE(v1, 13) ^ v0;                                                          \
		v0 = ROTATE(v0, 32);                                                               \
		v2 += v3;                                                                          \
		v3 = ROTATE(v3, 16) ^ v2;                                                          \
		v0 += v3;                                                                          \
		v3 = ROTATE(v3, 21) ^ v0;                                                          \
		v2 += v1;                                                                          \
		v1 = ROTATE(v1, 17) ^ v2;                                                          \
		v2 = ROTATE(v2, 32);                                                               \
	} while (0)

KERNEL
{
	uint64_t v0 = S.key[0] ^ UINT64_C(0x736f6d6570736575),
		 v1 = S.key[1] ^ UINT64_C(0x646f72616e646f6d);
	uint64_t v2 = S.key[0] ^ UINT64_C(0x6c7967656e657261),
		 v3 = S.key[1] ^ UINT64_C(0x7465646279746573);
	uint64_t size = event->arg[0] < 8 * (WORDS - 1) ? event->arg[0] : 8 * (WORDS - 1),
		 words = size / 8, last;

	for (uint64_t i = 0; i < words; i++) {
		uint64_t m = S.word[i];

		v3 ^= m;
		ROUND;
		ROUND;
		v0 ^= m;
	}
	last = size << 56;
	if (size & 7)
		last |= S.word[words] & ((UINT64_C(1) << 8 * (size & 7)) - 1);
	v3 ^= last;
	ROUND;
	ROUND;
	v0 ^= last;
	v2 ^= 255;
	for (unsigned i = 0; i < 4; i++)
		ROUND;
	S.hash = v0 ^ v1 ^ v2 ^ v3;
}

SETUP
{
	event->arg[0] = 1997;
	setup_state->key[0] = UINT64_C(0x0706050403020100);
	setup_state->key[1] = UINT64_C(0x0f0e0d0c0b0a0908);
	for (unsigned i = 0; i < WORDS; i++)
		setup_state->word[i] = (uint64_t)setup_random(seed) << 32 | setup_random(seed);
}
