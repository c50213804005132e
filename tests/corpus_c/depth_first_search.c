/* SPDX-License-Identifier: MIT */
// Reachable nodes of a graph given as bit sets, with an explicit stack.
// needs: nothing
#include "corpus.h"

static const uint16_t edges[16] = {0x0006, 0x0018, 0x0060, 0x0180, 0x0600, 0x1800, 0x6000, 0x8001,
				   0x0002, 0x0004, 0x0100, 0x0200, 0x0400, 0x0800, 0x1000, 0x2000};

STATE {
	uint64_t reached[17];
};

PROBE("libc!write")
{
	uint8_t stack[16];
	uint32_t seen = 1u << (event->arg[0] & 15);
	unsigned top = 1;

	for (unsigned i = 0; i < 16; i++)
		stack[i] = 0;
	stack[0] = event->arg[0] & 15;
	for (int n = 0; n < 16 && top > 0 && top <= 16; n++) {
		uint32_t fresh = edges[stack[--top] & 15] & ~seen & (uint32_t)(event->arg[3] | 1);

		for (unsigned bit = 0; bit < 16; bit++)
			if (fresh >> bit & 1 && top < 16) {
				seen |= 1u << bit;
				stack[top++] = (uint8_t)bit;
			}
	}
	state->reached[__builtin_popcount(seen & 0xffff)]++;
}
