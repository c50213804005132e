/* SPDX-License-Identifier: MIT */
/* 4-bit codes to 1024 samples of 16 bits. */
#include "adpcm.h"

KERNEL
{
	int predicted = S.predicted, index = S.index, step = step_size[index];

	for (unsigned i = 0; i < SAMPLES; i++) {
		int code = S.code[i / 2] >> (i & 1 ? 4 : 0) & 15, change = step >> 3;

		if (code & 4)
			change += step;
		if (code & 2)
			change += step >> 1;
		if (code & 1)
			change += step >> 2;
		predicted += code & 8 ? -change : change;
		if (predicted > 32767)
			predicted = 32767;
		if (predicted < -32768)
			predicted = -32768;
		index += index_change[code];
		if (index < 0)
			index = 0;
		if (index > 88)
			index = 88;
		step = step_size[index];
		S.sample[i] = (int16_t)predicted;
	}
	S.predicted = predicted;
	S.index = index;
}

SETUP
{
	event->arg[0] = SAMPLES;
	for (unsigned i = 0; i < SAMPLES / 2; i++)
		/* small steps mostly */
		setup_state->code[i] = (uint8_t)(setup_random(seed) & 0xbb);
}
