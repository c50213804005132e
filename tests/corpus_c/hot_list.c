/* SPDX-License-Identifier: MIT */
// A list of pages in use, searched on each event (as in the hotlist benchmark).
// needs: guard (links are kept in state)
#include "corpus.h"

enum { PAGES = 32 };

STATE {
	struct { uint64_t page; uint8_t next; } node[PAGES];
	uint8_t first;
	uint32_t used;
	uint64_t hits, misses, steps;
};

PROBE("libc!mmap")
{
	uint64_t page = event->arg[3] >> 58;
	unsigned at = state->first;

	for (int n = 0; n < PAGES && at; n++, at = state->node[at].next) {
		state->steps++;
		if (state->node[at].page == page) {
			state->hits++;
			return;
		}
	}
	state->misses++;
	if (state->used < PAGES - 1) {
		at = ++state->used;
		state->node[at].page = page;
		state->node[at].next = state->first;
		state->first = (uint8_t)at;
	}
}
