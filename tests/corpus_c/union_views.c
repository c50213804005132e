/* SPDX-License-Identifier: MIT */
// One word seen as bytes, halves and words.
// needs: nothing
#include "corpus.h"

union view { uint64_t word; uint32_t half[2]; uint16_t quarter[4]; uint8_t byte[8]; };

STATE {
	uint64_t byte_sum, quarter_xor;
	union view kept;
};

PROBE("libc!write")
{
	union view v = {.word = event->arg[3]};

	for (unsigned i = 0; i < 8; i++)
		state->byte_sum += v.byte[i];
	for (unsigned i = 0; i < 4; i++)
		state->quarter_xor ^= (uint64_t)v.quarter[i] << (8 * i);
	v.half[event->arg[0] & 1] = 0;
	v.byte[7] = v.byte[0];
	state->kept = v;
}
