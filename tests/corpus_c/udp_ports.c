/* SPDX-License-Identifier: MIT */
// UDP: ports below 1024 and the checksum over a pseudo-header.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t port[1024];
	uint64_t high, no_checksum;
};

PROBE("libc!sendto")
{
	uint16_t h[4];
	uint16_t port;

	if (READ(h, event->arg[1]))
		return;
	port = __builtin_bswap16(h[1]);
	if (port < 1024)
		state->port[port]++;
	else
		state->high++;
	if (!h[3])
		state->no_checksum++;
}
