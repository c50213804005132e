/* SPDX-License-Identifier: MIT */
// SipHash-2-4 of 16 bytes with a key from the event.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t last;
	uint64_t low_bit;
};

static inline uint64_t rol64(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rol64(v[1], 13) ^ v[0];
	v[0] = rol64(v[0], 32);
	v[2] += v[3];
	v[3] = rol64(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rol64(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rol64(v[1], 17) ^ v[2];
	v[2] = rol64(v[2], 32);
}

PROBE("libc!write")
{
	uint64_t m[2], v[4] = {
		event->arg[3] ^ UINT64_C(0x736f6d6570736575), event->arg[5] ^ UINT64_C(0x646f72616e646f6d),
		event->arg[3] ^ UINT64_C(0x6c7967656e657261), event->arg[5] ^ UINT64_C(0x7465646279746573),
	};

	if (READ(m, event->arg[1]))
		return;
	for (int i = 0; i < 2; i++) {
		v[3] ^= m[i];
		sip_round(v);
		sip_round(v);
		v[0] ^= m[i];
	}
	v[3] ^= UINT64_C(16) << 56;
	sip_round(v);
	sip_round(v);
	v[0] ^= UINT64_C(16) << 56;
	v[2] ^= 255;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	state->last = v[0] ^ v[1] ^ v[2] ^ v[3];
	state->low_bit += state->last & 1;
}
