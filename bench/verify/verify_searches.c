/* SPDX-License-Identifier: MIT */
// Searches of graphs with explicit stacks (tests/corpus_c/depth_first_search.c), 28 different ones
// in one probe: some 2,000 instructions, of which the solver is
// asked some. Measured by bench/verify/verify_speed.sh.
#include "corpus.h"

static const uint16_t edges[16] = {
	0x0006, 0x0018, 0x0060, 0x0180, 0x0600, 0x1800, 0x6000, 0x8001,
	0x0002, 0x0004, 0x0100, 0x0200, 0x0400, 0x0800, 0x1000, 0x2000
};

STATE
{
	uint64_t reached[28][17];
};

static inline __attribute__((always_inline)) void search(uint64_t *reached, uint32_t first,
							 uint32_t allowed, unsigned deepest)
{
	uint8_t stack[16];
	uint32_t seen = 1u << first;
	unsigned top = 1;

	for (unsigned i = 0; i < 16; i++)
		stack[i] = 0;
	stack[0] = (uint8_t)first;
	for (int n = 0; n < 16 && top > 0 && top <= deepest; n++) {
		uint32_t fresh = edges[stack[--top] & 15] & ~seen & allowed;

		for (unsigned bit = 0; bit < 16; bit++)
			if (fresh >> bit & 1 && top < deepest) {
				seen |= 1u << bit;
				stack[top++] = (uint8_t)bit;
			}
	}
	reached[__builtin_popcount(seen & 0xffff)]++;
}

#define SEARCH(i)                                                                                  \
	search(state->reached[i], (uint32_t)(event->arg[(i) % 4] >> (i)) & 15,                     \
	       (uint32_t)event->arg[3] | ((i) + 1), 16 - (i) % 4);
#define SEARCHES(i)                                                                                \
	SEARCH(i)                                                                                  \
	SEARCH((i) + 1)                                                                            \
	SEARCH((i) + 2) SEARCH((i) + 3) SEARCH((i) + 4) SEARCH((i) + 5) SEARCH((i) + 6)

PROBE("libc!write")
{
	SEARCHES(0)
	SEARCHES(7)
	SEARCHES(14)
	SEARCHES(21)
}
