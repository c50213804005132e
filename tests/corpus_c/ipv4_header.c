/* SPDX-License-Identifier: MIT */
// IPv4 headers: protocols, lengths, fragments, malformed ones by reason.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t protocol[256];
	uint64_t bytes, fragments, options;
	uint64_t bad_version, bad_length;
};

PROBE("libc!sendto")
{
	uint8_t h[20];
	unsigned words;

	if (READ(h, event->arg[1]))
		return;
	if (h[0] >> 4 != 4) {
		state->bad_version++;
		return;
	}
	words = h[0] & 15;
	if (words < 5 || get_be16(h + 2) < words * 4) {
		state->bad_length++;
		return;
	}
	state->protocol[h[9]]++;
	state->bytes += get_be16(h + 2);
	if (get_be16(h + 6) & 0x3fff)
		state->fragments++;
	if (words > 5)
		state->options += words - 5;
}
