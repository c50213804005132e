/* SPDX-License-Identifier: MIT */
// Conway's game of life on 64 cells of a torus, sown by events.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t cells;
	uint64_t births, deaths;
};

PROBE("libc!write")
{
	uint64_t next = 0;

	state->cells ^= event->arg[3];
	for (int y = 0; y < 8; y++)
		for (int x = 0; x < 8; x++) {
			unsigned around = 0;

			for (int dy = -1; dy <= 1; dy++)
				for (int dx = -1; dx <= 1; dx++)
					if (dx || dy)
						around += state->cells >> (((y + dy) & 7) * 8 + ((x + dx) & 7)) & 1;
			if (around == 3 || (around == 2 && state->cells >> (y * 8 + x) & 1))
				next |= UINT64_C(1) << (y * 8 + x);
		}
	state->births += (uint64_t)__builtin_popcountll(next & ~state->cells);
	state->deaths += (uint64_t)__builtin_popcountll(state->cells & ~next);
	state->cells = next;
}
