/* SPDX-License-Identifier: MIT */
// A Bloom filter of four-bit counters that can forget.
// needs: nothing
#include "corpus.h"

STATE {
	uint8_t counter[512]; /* two of four bits in each */
	uint64_t adds, removes;
};

static inline void change(uint8_t *byte, bool high, int by)
{
	unsigned value = high ? *byte >> 4 : *byte & 15;

	if ((by > 0 && value < 15) || (by < 0 && value > 0))
		value += (unsigned)by;
	*byte = (uint8_t)(high ? (*byte & 15) | value << 4 : (*byte & 0xf0) | value);
}

PROBE("libc!write")
{
	uint32_t hash = (uint32_t)event->arg[2] * 0x9e3779b1u;
	bool remove = event->arg[0] & 1;

	for (int i = 0; i < 3; i++) {
		unsigned at = hash >> 22;

		change(&state->counter[at / 2], at & 1, remove ? -1 : 1);
		hash = hash << 10 | hash >> 22;
	}
	if (remove)
		state->removes++;
	else
		state->adds++;
}
