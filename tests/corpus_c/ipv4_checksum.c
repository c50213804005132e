/* SPDX-License-Identifier: MIT */
// The header checksum of IPv4, over a header with options.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t good, bad;
};

PROBE("libc!sendto")
{
	uint8_t h[60];
	unsigned length;
	uint32_t sum = 0;

	if (READ(h, event->arg[1]))
		return;
	length = (h[0] & 15u) * 4;
	for (unsigned i = 0; i + 1 < length; i += 2)
		sum += get_be16(h + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	if (sum == 0xffff)
		state->good++;
	else
		state->bad++;
}
