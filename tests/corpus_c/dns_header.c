/* SPDX-License-Identifier: MIT */
// DNS messages: queries and answers, response codes, counts.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t queries, answers, truncated, code[16], records;
};

PROBE("libc!sendto")
{
	uint8_t h[12];
	uint16_t flags;

	if (event->arg[2] < 12 || READ(h, event->arg[1]))
		return;
	flags = get_be16(h + 2);
	if (flags & 0x8000) {
		state->answers++;
		state->code[flags & 15]++;
		state->records += (uint64_t)get_be16(h + 6) + get_be16(h + 8) + get_be16(h + 10);
	} else {
		state->queries++;
	}
	if (flags & 0x0200)
		state->truncated++;
}
