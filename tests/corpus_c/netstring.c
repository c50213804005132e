/* SPDX-License-Identifier: MIT */
// Netstrings: decimal length, colon, bytes, comma.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t strings, bytes, bad;
};

PROBE("libc!write")
{
	char b[64];
	unsigned at = 0;

	if (READ(b, event->arg[1]))
		return;
	while (at < sizeof(b)) {
		unsigned length = 0, digits = 0;

		while (at < sizeof(b) && digits < 3 && b[at] >= '0' && b[at] <= '9') {
			length = length * 10 + (unsigned)(b[at] - '0');
			digits++;
			at++;
		}
		if (!digits || at >= sizeof(b) || b[at] != ':' || at + length + 1 >= sizeof(b)) {
			state->bad++;
			return;
		}
		at += length + 1;
		if (b[at] != ',') {
			state->bad++;
			return;
		}
		at++;
		state->strings++;
		state->bytes += length;
	}
}
