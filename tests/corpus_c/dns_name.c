/* SPDX-License-Identifier: MIT */
// The labels of the first name of a DNS query: count, length, hash in lower case.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t labels, bytes, compressed, malformed;
	uint32_t by_hash[64];
};

PROBE("libc!sendto")
{
	uint8_t m[96];
	unsigned at = 12;
	uint32_t hash = 2166136261u;

	if (READ(m, event->arg[1]))
		return;
	for (int n = 0; n < 32; n++) {
		unsigned length = m[at];

		if (!length) {
			state->by_hash[hash & 63]++;
			return;
		}
		if (length >= 0xc0) {
			state->compressed++;
			return;
		}
		if (length > 63 || at + length + 1 >= sizeof(m))
			break;
		state->labels++;
		state->bytes += length;
		for (unsigned i = 1; i <= length; i++) {
			uint8_t c = m[at + i];

			if (c >= 'A' && c <= 'Z')
				c |= 32;
			hash = (hash ^ c) * 16777619u;
		}
		at += length + 1;
	}
	state->malformed++;
}
