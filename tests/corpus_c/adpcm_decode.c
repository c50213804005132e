/* SPDX-License-Identifier: MIT */
// IMA ADPCM: 32 samples from 16 bytes.
// needs: nothing
#include "corpus.h"

static const int16_t step_size[89] = {
	7,    8,    9,    10,   11,   12,   13,   14,   16,   17,   19,   21,    23,    25,    28,    31,    34,    37,
	41,   45,   50,   55,   60,   66,   73,   80,   88,   97,   107,  118,   130,   143,   157,   173,   190,   209,
	230,  253,  279,  307,  337,  371,  408,  449,  494,  544,  598,  658,   724,   796,   876,   963,   1060,  1166,
	1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660,  4026,  4428,  4871,  5358,  5894,  6484,
	7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
};
static const int8_t index_change[8] = {-1, -1, -1, -1, 2, 4, 6, 8};

STATE {
	int16_t sample[32];
	uint64_t energy;
};

PROBE("libasound!snd_pcm_writei")
{
	uint8_t b[16];
	int predicted = 0, index = 0;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < 32; i++) {
		unsigned code = b[i / 2] >> (i & 1 ? 4 : 0) & 15;
		int step = step_size[index], change = step >> 3;

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
		index += index_change[code & 7];
		if (index < 0)
			index = 0;
		if (index > 88)
			index = 88;
		state->sample[i] = (int16_t)predicted;
		state->energy += (uint64_t)(predicted < 0 ? -predicted : predicted);
	}
}
