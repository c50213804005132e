/* SPDX-License-Identifier: MIT */
// TCP segments by flags, and options' window scale.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t syn, synack, fin, reset, data, scales[15];
};

PROBE("libc!sendto")
{
	uint8_t h[60];
	unsigned end, at = 20;

	if (READ(h, event->arg[1]))
		return;
	end = (h[12] >> 4) * 4u;
	if (h[13] & 4)
		state->reset++;
	if (h[13] & 1)
		state->fin++;
	if ((h[13] & 0x12) == 0x12)
		state->synack++;
	else if (h[13] & 2)
		state->syn++;
	else
		state->data++;
	while (at + 2 < end && at + 2 < sizeof(h)) {
		if (h[at] == 0)
			break;
		if (h[at] == 1) {
			at++;
			continue;
		}
		if (h[at] == 3 && h[at + 2] < 15)
			state->scales[h[at + 2]]++;
		if (h[at + 1] < 2)
			break;
		at += h[at + 1];
	}
}
