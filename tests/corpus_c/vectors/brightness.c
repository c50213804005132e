/* SPDX-License-Identifier: MIT */
// Saturating addition over 64 bytes, and how many are white after it.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	uint8_t picture[64];
	uint32_t white;
};

PROBE("libpng!png_write_row")
{
	uint8_t row[64];

	if (READ(row, event->arg[1]))
		return;
	for (int i = 0; i < 64; i++) {
		unsigned sum = row[i] + (unsigned)(event->arg[0] & 63);

		state->picture[i] = (uint8_t)(sum > 255 ? 255 : sum);
	}
	for (int i = 0; i < 64; i++)
		state->white += state->picture[i] == 255;
}
