/* SPDX-License-Identifier: MIT */
/* Boyer-Moore-Horspool (1980) search of a text of 1024 bytes for a word of up to 16. */
#include "kernel.h"

#define TEXT 1024
#define WORD 16

struct state {
	uint64_t size, matches, last;
	uint8_t skip[256];
	uint8_t word[WORD];
	uint8_t text[TEXT];
};

KERNEL
{
	uint64_t size = S.size, at, matches = 0, k;

	if (size < 2 || size > WORD)
		return;
	for (k = 0; k < 256; k++)
		S.skip[k] = (uint8_t)size;
	for (k = 0; k < size - 1; k++)
		S.skip[S.word[k]] = (uint8_t)(size - 1 - k);
	for (at = 0; at <= TEXT - size; at += S.skip[S.text[at + size - 1]]) {
		for (k = size; k && S.text[at + k - 1] == S.word[k - 1]; k--)
			;
		if (!k) {
			matches++;
			S.last = at;
		}
	}
	S.matches = matches;
}

SETUP
{
	static const char word[] = "probe";

	event->arg[0] = TEXT;
	setup_state->size = 5;
	for (unsigned i = 0; i < TEXT; i++)
		setup_state->text[i] = (uint8_t)("probes are here, be"[setup_random(seed) % 19]);
	for (unsigned i = 0; i < 5; i++)
		setup_state->word[i] = (uint8_t)word[i];
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 5; k++)
			setup_state->text[250 * i + 10 + k] = (uint8_t)word[k];
}
