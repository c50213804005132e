/* SPDX-License-Identifier: MIT */
// NTP: the fraction of a second in microseconds, in fixed point.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t stratum[16], micros, packets;
	int64_t offset;
};

PROBE("libc!sendto")
{
	uint8_t p[48];
	uint64_t seconds, fraction;

	if (event->arg[2] < 48 || READ(p, event->arg[1]))
		return;
	state->stratum[p[1] & 15]++;
	seconds = get_be32(p + 40);
	fraction = get_be32(p + 44);
	state->micros += fraction * 1000000 >> 32;
	state->offset += (int64_t)(seconds - 2208988800u) - (int64_t)(event->time / 1000000000u);
	state->packets++;
}
