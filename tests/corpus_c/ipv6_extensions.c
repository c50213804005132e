/* SPDX-License-Identifier: MIT */
// The chain of extension headers of an IPv6 packet.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t last[256];
	uint64_t extensions, too_long;
};

PROBE("libc!sendto")
{
	uint8_t p[192];
	unsigned at = 40;
	uint8_t next;

	if (READ(p, event->arg[1]) || p[0] >> 4 != 6)
		return;
	next = p[6];
	for (int n = 0; n < 8; n++) {
		if (next != 0 && next != 43 && next != 44 && next != 60) {
			state->last[next]++;
			return;
		}
		if (at > sizeof(p) - 8)
			break;
		state->extensions++;
		next = p[at];
		at += next == 44 ? 8 : 8 + p[at + 1] * 8u;
	}
	state->too_long++;
}
