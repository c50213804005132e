/* SPDX-License-Identifier: MIT */
// Routing by the longest of eight prefixes.
// needs: nothing
#include "corpus.h"

static const struct { uint32_t net; uint8_t length, port; } routes[8] = {
	{0x0a000000, 8, 1},  {0x0a010000, 16, 2}, {0x0a010200, 24, 3}, {0xc0a80000, 16, 4},
	{0xac100000, 12, 5}, {0x80000000, 1, 6},  {0x7f000000, 8, 7},  {0x00000000, 0, 0},
};

STATE {
	uint64_t port[8];
};

PROBE("libc!connect")
{
	uint32_t address = (uint32_t)event->arg[3];
	unsigned best = 7, length = 0;

	for (unsigned i = 0; i < 8; i++) {
		uint32_t mask = routes[i].length ? ~0u << (32 - routes[i].length) : 0;

		if ((address & mask) == routes[i].net && routes[i].length >= length) {
			best = routes[i].port;
			length = routes[i].length;
		}
	}
	state->port[best & 7]++;
}
