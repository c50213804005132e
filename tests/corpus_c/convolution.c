/* SPDX-License-Identifier: MIT */
// A window of five over 40 samples, with the edges repeated.
// needs: nothing
#include "corpus.h"

static const int8_t kernel[5] = {1, 4, 6, 4, 1};

STATE {
	int16_t smooth[40];
	int64_t sum;
};

PROBE("libasound!snd_pcm_writei")
{
	int16_t x[40];

	if (READ(x, event->arg[1]))
		return;
	for (int i = 0; i < 40; i++) {
		int32_t y = 0;

		for (int k = -2; k <= 2; k++) {
			int at = i + k < 0 ? 0 : i + k > 39 ? 39 : i + k;

			y += x[at] * kernel[k + 2];
		}
		state->smooth[i] = (int16_t)(y / 16);
		state->sum += state->smooth[i];
	}
}
