/* SPDX-License-Identifier: MIT */
// The eight-point DCT in integers, as in JPEG's rows.
// needs: nothing
#include "corpus.h"

STATE {
	int32_t coefficient[8];
	uint64_t blocks;
};

PROBE("libjpeg!jpeg_fdct_islow")
{
	int16_t x[8];
	int32_t s[8];

	if (READ(x, event->arg[1]))
		return;
	for (unsigned i = 0; i < 4; i++) {
		s[i] = x[i] + x[7 - i];
		s[7 - i] = x[i] - x[7 - i];
	}
	state->coefficient[0] = s[0] + s[1] + s[2] + s[3];
	state->coefficient[4] = s[0] - s[1] - s[2] + s[3];
	state->coefficient[2] = ((s[1] - s[2]) * 4433 + (s[0] - s[3]) * 10703) >> 13;
	state->coefficient[6] = ((s[1] - s[2]) * -10703 + (s[0] - s[3]) * 4433) >> 13;
	state->coefficient[1] = (s[4] * 2260 + s[5] * 6436 + s[6] * 9633 + s[7] * 11363) >> 13;
	state->coefficient[3] = (s[4] * -6436 + s[5] * -11363 + s[6] * -2260 + s[7] * 9633) >> 13;
	state->coefficient[5] = (s[4] * 9633 + s[5] * 2260 + s[6] * -11363 + s[7] * 6436) >> 13;
	state->coefficient[7] = (s[4] * -11363 + s[5] * 9633 + s[6] * -6436 + s[7] * 2260) >> 13;
	state->blocks++;
}
