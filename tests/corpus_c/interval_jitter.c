/* SPDX-License-Identifier: MIT */
// Intervals between events and how they vary (RFC 3550's estimate).
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t before;
	int64_t transit, jitter;
	uint64_t shortest, longest;
};

PROBE("libc!recv")
{
	uint64_t gap = event->time - state->before;
	int64_t transit = (int64_t)(gap & 0xffffffff), d;

	d = transit - state->transit;
	state->transit = transit;
	if (d < 0)
		d = -d;
	state->jitter += d - ((state->jitter + 8) >> 4);
	if (!state->shortest || gap < state->shortest)
		state->shortest = gap;
	if (gap > state->longest)
		state->longest = gap;
	state->before = event->time;
}
