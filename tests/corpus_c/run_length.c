/* SPDX-License-Identifier: MIT */
// Run-length coding of 64 bytes, into a buffer of state.
// needs: guard (the output position depends on the data)
#include "corpus.h"

STATE {
	uint8_t coded[128];
	uint64_t in, out;
};

PROBE("libc!write")
{
	uint8_t b[64];
	unsigned at = 0, to = 0;

	if (READ(b, event->arg[1]))
		return;
	while (at < sizeof(b)) {
		unsigned run = 1;

		while (at + run < sizeof(b) && b[at + run] == b[at])
			run++;
		state->coded[to++] = (uint8_t)run;
		state->coded[to++] = b[at];
		at += run;
	}
	state->in += sizeof(b);
	state->out += to;
}
