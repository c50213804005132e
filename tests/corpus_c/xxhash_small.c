/* SPDX-License-Identifier: MIT */
// The tail of XXH64 over 13 bytes: a word, a half word, a byte.
// needs: nothing
#include "corpus.h"

#define P1 UINT64_C(0x9e3779b185ebca87)
#define P2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define P3 UINT64_C(0x165667b19e3779f9)
#define P4 UINT64_C(0x85ebca77c2b2ae63)
#define P5 UINT64_C(0x27d4eb2f165667c5)

STATE {
	uint64_t hash;
};

PROBE("libc!write")
{
	struct __attribute__((packed)) { uint64_t word; uint32_t half; uint8_t byte; } b;
	uint64_t h = P5 + sizeof(b), k;

	if (READ(b, event->arg[1]))
		return;
	k = b.word * P2;
	k = (k << 31 | k >> 33) * P1;
	h ^= k;
	h = (h << 27 | h >> 37) * P1 + P4;
	h ^= b.half * P1;
	h = (h << 23 | h >> 41) * P2 + P3;
	h ^= b.byte * P5;
	h = (h << 11 | h >> 53) * P1;
	h = (h ^ h >> 33) * P2;
	h = (h ^ h >> 29) * P3;
	state->hash ^= h ^ h >> 32;
}
