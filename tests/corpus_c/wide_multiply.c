/* SPDX-License-Identifier: MIT */
// A hash by the two halves of a 128-bit product.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t hash;
	uint32_t hits[32];
};

PROBE("libc!write")
{
	unsigned __int128 product = (unsigned __int128)(event->arg[3] ^ UINT64_C(0xa0761d6478bd642f)) *
				    (event->arg[2] ^ UINT64_C(0xe7037ed1a0b428db));

	state->hash = (uint64_t)product ^ (uint64_t)(product >> 64);
	state->hits[state->hash >> 59]++;
}
