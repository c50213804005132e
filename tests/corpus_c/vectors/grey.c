/* SPDX-License-Identifier: MIT */
// Colours to grey, 48 pixels at once.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint8_t grey[48];
	uint64_t sum;
};

PROBE("libpng!png_write_row")
{
	uint8_t rgb[48 * 3];

	if (READ(rgb, event->arg[1]))
		return;
	for (int i = 0; i < 48; i++) {
		float y = 0.299f * rgb[3 * i] + 0.587f * rgb[3 * i + 1] + 0.114f * rgb[3 * i + 2];

		state->grey[i] = (uint8_t)(y + 0.5f);
		state->sum += state->grey[i];
	}
}
