/* SPDX-License-Identifier: MIT */
// gzip: flags, and how long the header is with an extra field and a name.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t files, header_bytes, named, with_extra, bad;
};

PROBE("libz!inflate")
{
	uint8_t h[64];
	unsigned at = 10;

	if (READ(h, event->arg[1]) || h[0] != 0x1f || h[1] != 0x8b || h[2] != 8) {
		state->bad++;
		return;
	}
	if (h[3] & 4) {
		state->with_extra++;
		at += 2u + h[10] + h[11] * 256u;
	}
	if (h[3] & 8) {
		state->named++;
		while (at < sizeof(h) && h[at])
			at++;
		at++;
	}
	state->files++;
	state->header_bytes += at;
}
