/* SPDX-License-Identifier: MIT */
/* Loops that fill bytes: whole arrays, a part, under a condition, with a byte that is made in the loop. */
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t calls;
	uint8_t whole[256], part[100], odd[21], rows[4][32];
};

PROBE("libc!write")
{
	uint64_t x = event->arg[2], y = event->arg[3];

	state->calls++;
	if (x & 1)
		for (unsigned i = 0; i < 256; i++)
			state->whole[i] = (uint8_t)(x + y);
	if (x & 2)
		for (uint64_t i = 0; i < 77; i++)
			state->part[i + 8] = (uint8_t)y;
	for (int i = 0; i < 21; i++)
		state->odd[i] = 0x5a;
	if (y % 5 == 2)
		return;
	for (unsigned i = 0; i != 32; i++)
		state->rows[x % 4][i] = (uint8_t)(x >> 8);
	state->whole[y & 255]++;
	state->part[y % 100] ^= state->odd[x % 21]++;
}
