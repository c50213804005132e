/* SPDX-License-Identifier: MIT */
// Cuckoo hashing with at most eight moves.
// needs: nothing
#include "corpus.h"

enum { ROWS = 64 };

STATE {
	uint64_t key[2][ROWS];
	uint64_t lost;
};

static inline unsigned place(uint64_t key, unsigned table)
{
	uint64_t h = key * (table ? UINT64_C(0xc4ceb9fe1a85ec53) : UINT64_C(0x9e3779b97f4a7c15));

	return (unsigned)(h >> 58);
}

PROBE("libc!write")
{
	uint64_t key = event->arg[0] + 1;
	unsigned table = 0;

	if (state->key[0][place(key, 0)] == key || state->key[1][place(key, 1)] == key)
		return;
	for (unsigned move = 0; move < 8; move++) {
		unsigned at = place(key, table);
		uint64_t evicted = state->key[table][at];

		state->key[table][at] = key;
		if (!evicted)
			return;
		key = evicted;
		table ^= 1;
	}
	state->lost++;
}
