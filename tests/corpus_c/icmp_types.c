/* SPDX-License-Identifier: MIT */
// ICMP by type, with the worst code of each.
// needs: nothing
#include "corpus.h"

STATE {
	struct { uint32_t count; uint8_t highest_code; } type[256];
};

PROBE("libc!sendto")
{
	uint8_t h[8];

	if (READ(h, event->arg[1]))
		return;
	state->type[h[0]].count++;
	if (h[1] > state->type[h[0]].highest_code)
		state->type[h[0]].highest_code = h[1];
}
