/* SPDX-License-Identifier: MIT */
// For each set bit, its place: an iteration by clearing the lowest.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t place[64];
};

PROBE("libc!select")
{
	uint64_t set = event->arg[3];

	while (set) {
		state->place[__builtin_ctzll(set)]++;
		set &= set - 1;
	}
}
