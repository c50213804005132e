/* SPDX-License-Identifier: MIT */
// IPv4 options: type, length, value, until the end or a mistake.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t option[32];
	uint64_t malformed;
};

PROBE("libc!sendto")
{
	uint8_t h[60];
	unsigned end, at = 20;

	if (READ(h, event->arg[1]))
		return;
	end = (h[0] & 15u) * 4;
	for (int n = 0; n < 40 && at < end; n++) {
		uint8_t type = h[at], length;

		if (type == 0)
			return;
		state->option[type & 31]++;
		if (type == 1) {
			at++;
			continue;
		}
		if (at + 1 >= end || at + 1 >= 60) {
			state->malformed++;
			return;
		}
		length = h[at + 1];
		if (length < 2 || length > end - at) {
			state->malformed++;
			return;
		}
		at += length;
	}
}
