/* SPDX-License-Identifier: MIT */
// Arithmetic in 8 and 16 bits, signed and unsigned, with wrapping.
// needs: nothing
#include "corpus.h"

STATE {
	int8_t s8;
	uint8_t u8;
	int16_t s16;
	uint16_t u16;
	int32_t wraps;
};

PROBE("libc!write")
{
	int8_t a = (int8_t)event->arg[3];
	uint8_t b = (uint8_t)(event->arg[3] >> 8);
	int16_t c = (int16_t)(event->arg[3] >> 16);
	uint16_t d = (uint16_t)(event->arg[3] >> 32);

	if ((int8_t)(state->s8 + a) != state->s8 + a)
		state->wraps++;
	state->s8 = (int8_t)(state->s8 + a);
	state->u8 = (uint8_t)(state->u8 * b + 1);
	state->s16 = (int16_t)(state->s16 - (c >> 2));
	state->u16 = (uint16_t)((state->u16 << 3 | state->u16 >> 13) ^ d);
}
