/* SPDX-License-Identifier: MIT */
// A trie of nibbles in state: at most 64 nodes, four levels.
// needs: guard (node numbers are kept in state)
#include "corpus.h"

enum { NODES = 64 };

STATE {
	struct { uint8_t child[16]; uint32_t hits; } node[NODES];
	uint32_t used;
	uint64_t full;
};

PROBE("libc!open")
{
	uint16_t key = (uint16_t)event->arg[2];
	unsigned at = 0;

	for (int level = 0; level < 4; level++) {
		unsigned nibble = key >> (12 - 4 * level) & 15;

		if (!state->node[at].child[nibble]) {
			if (state->used == NODES - 1) {
				state->full++;
				return;
			}
			state->node[at].child[nibble] = (uint8_t)++state->used;
		}
		at = state->node[at].child[nibble];
	}
	state->node[at].hits++;
}
