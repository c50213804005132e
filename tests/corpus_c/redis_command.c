/* SPDX-License-Identifier: MIT */
// RESP requests: number of words, length and hash of the command's name.
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t by_command[64];
	uint64_t words, inline_commands, malformed;
};

static inline int number(const uint8_t *text, unsigned size, unsigned *at, uint32_t *value)
{
	uint32_t v = 0;

	for (unsigned digits = 0; digits < 6 && *at < size; digits++) {
		uint8_t c = text[(*at)++];

		if (c == '\r') {
			(*at)++;
			*value = v;
			return digits ? 0 : -1;
		}
		if (c < '0' || c > '9')
			return -1;
		v = v * 10 + (c - '0');
	}
	return -1;
}

PROBE("redis-server!processInputBuffer")
{
	uint8_t text[64];
	unsigned at = 1;
	uint32_t words, length, hash = 0;

	if (READ(text, event->arg[1]))
		return;
	if (text[0] != '*') {
		state->inline_commands++;
		return;
	}
	if (number(text, sizeof(text), &at, &words) || at >= sizeof(text) || text[at++] != '$' ||
	    number(text, sizeof(text), &at, &length)) {
		state->malformed++;
		return;
	}
	state->words += words;
	for (unsigned i = 0; i < length && i < 16 && at < sizeof(text); i++, at++)
		hash = hash * 31 + (text[at] & 0xdf);
	state->by_command[hash % 64]++;
}
