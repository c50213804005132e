/* SPDX-License-Identifier: MIT */
// Sums that need more than 64 bits, with the carry kept.
// needs: nothing
#include "corpus.h"

STATE {
	unsigned __int128 sum;
	__int128 balance;
};

PROBE("libc!write")
{
	state->sum += event->arg[3];
	state->balance += (int64_t)event->arg[3];
	if (state->balance < 0)
		state->balance += event->arg[2];
}
