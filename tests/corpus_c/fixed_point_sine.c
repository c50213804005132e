/* SPDX-License-Identifier: MIT */
// A sine by a table of a quarter wave, with linear interpolation.
// needs: nothing
#include "corpus.h"

static const int16_t quarter[17] = {0,     3212,  6393,  9512,  12539, 15446, 18204, 20787, 23170,
				    25329, 27245, 28898, 30273, 31356, 32137, 32609, 32767};

STATE {
	int64_t sum;
	int32_t last;
};

PROBE("libm!sin")
{
	unsigned angle = (unsigned)event->arg[3] & 0xffff, part = angle & 0x3fff, at;
	int32_t value;

	if (angle & 0x4000)
		part = 0x3fff - part;
	at = part >> 10;
	value = quarter[at] + ((quarter[at + 1] - quarter[at]) * (int32_t)(part & 1023)) / 1024;
	state->last = angle & 0x8000 ? -value : value;
	state->sum += state->last;
}
