/* SPDX-License-Identifier: MIT */
/* Truth values as indices, and a byte that is one of two in different memory. */
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t calls;
	uint8_t large[2], odd[3];
	uint8_t spare[3];
};

PROBE("libc!write")
{
	uint8_t bytes[8];
	bool large = event->arg[2] >= 0x100;

	state->calls++;
	if (READ(bytes, event->arg[1]))
		return;
	state->large[large]++;
	state->odd[(event->arg[2] & 1) + (event->arg[3] < 3)] += large;
	state->spare[0] += event->arg[3] == state->calls ? bytes[3] : state->large[1];
	state->spare[1] ^= event->arg[3] < state->calls ? bytes[7] : state->odd[0];
}
