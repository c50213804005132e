/* SPDX-License-Identifier: MIT */
/* 1024 samples of 16 bits to 4-bit codes. */
#include "adpcm.h"

KERNEL
{
	int predicted = S.predicted, index = S.index, step = step_size[index], first = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		int difference = S.sample[i] - predicted, code = 0, change = step >> 3;

		if (difference < 0) {
			code = 8;
			difference = -difference;
		}
		if (difference >= step) {
			code |= 4;
			difference -= step;
			change += step;
		}
		if (difference >= step >> 1) {
			code |= 2;
			difference -= step >> 1;
			change += step >> 1;
		}
		if (difference >= step >> 2) {
			code |= 1;
			change += step >> 2;
		}
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
		if (i & 1)
			S.code[i / 2] = (uint8_t)(first | code << 4);
		else
			first = code;
	}
	S.predicted = predicted;
	S.index = index;
}

SETUP
{
	event->arg[0] = SAMPLES;
	for (unsigned i = 0; i < SAMPLES; i++)
		setup_state->sample[i] = (int16_t)setup_wave(i, seed);
}
