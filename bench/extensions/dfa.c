/* SPDX-License-Identifier: MIT */
/* How many dates as 2026-11-28 there are, by an automaton's table. */
#include "kernel.h"

/* by state, and by what comes: a digit, a dash, anything else */
static const uint8_t next[11][3] = {
	{ 1, 0, 0 }, { 2, 0, 0 }, { 3, 0, 0 }, { 4, 0, 0 },  { 4, 5, 0 }, { 6, 0, 0 },
	{ 7, 0, 0 }, { 1, 8, 0 }, { 9, 0, 0 }, { 10, 0, 0 }, { 1, 0, 0 },
};

KERNEL(0)
{
	uint64_t found = 0;
	unsigned state = 0;

	for (uint64_t i = 0; i < size; i++) {
		unsigned digit = data[i] - (unsigned)'0';

		state = next[state][digit < 10 ? 0 : data[i] == '-' ? 1 : 2];
		found += state == 10;
	}
	return found;
}
