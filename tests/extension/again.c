/* SPDX-License-Identifier: MIT */
/* An extension for again.host, which copies, counts in its state, follows a number that it keeps
 * there, and calls a helper that may call it again. */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 64);
FAY_ENTRY(again);

struct state {
	uint64_t bytes, at, seen[6];
};

uint64_t nested(uint64_t number);
uint64_t again(const uint8_t *text, uint64_t size, uint8_t *copy, uint64_t room,
	       struct state *state);
uint64_t again(const uint8_t *text, uint64_t size, uint8_t *copy, uint64_t room,
	       struct state *state)
{
	uint64_t at, sum = 0;

	for (uint64_t i = 0; i < size; i++) {
		if (i < room)
			copy[i] = text[i];
		state->bytes++;
	}
	for (uint64_t i = 0; i < 8; i++) {
		at = state->at;
		if (at < 6)
			state->seen[at]++;
		state->at = (at + 1) % 8;
	}
	at = nested(size > 0 ? text[0] : 0);
	if (at < room)
		sum += copy[at];
	return sum + state->bytes;
}
