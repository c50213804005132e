/* SPDX-License-Identifier: MIT */
// Sixteen bytes as hexadecimal digits.
// needs: nothing
#include "corpus.h"

STATE {
	char line[33];
	uint8_t letters;
};

PROBE("libc!write")
{
	static const char digits[16] = "0123456789abcdef";
	uint8_t b[16];

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < 16; i++) {
		state->line[2 * i] = digits[b[i] >> 4];
		state->line[2 * i + 1] = digits[b[i] & 15];
	}
	state->line[32] = 0;
	state->letters = 0;
	for (unsigned i = 0; state->line[i] && i < 32; i++)
		if (state->line[i] > '9')
			state->letters++;
}
