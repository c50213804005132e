/* SPDX-License-Identifier: MIT */
// Bitap: up to eight-letter words, one bit a letter.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t hits;
	uint8_t last_place;
};

PROBE("libc!write")
{
	static const char word[] = "GET /";
	uint8_t b[64];
	uint32_t running = ~0u;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(b); i++) {
		uint32_t mask = ~0u;

		for (unsigned j = 0; j < 5; j++)
			if ((uint8_t)word[j] == b[i])
				mask &= ~(1u << j);
		running = running << 1 | mask;
		if (!(running & 1u << 4)) {
			state->hits++;
			state->last_place = (uint8_t)i;
		}
	}
}
