/* SPDX-License-Identifier: MIT */
// Misra-Gries: every key that makes up more than one in nine is among the eight.
// needs: nothing
#include "corpus.h"

enum { K = 8 };

STATE {
	struct { uint64_t key; uint32_t count; } top[K];
	uint32_t rounds;
};

PROBE("libc!write")
{
	uint64_t key = event->arg[0];
	int free_at = -1;

	for (int i = 0; i < K; i++) {
		if (state->top[i].count && state->top[i].key == key) {
			state->top[i].count++;
			return;
		}
		if (!state->top[i].count)
			free_at = i;
	}
	if (free_at >= 0) {
		state->top[free_at].key = key;
		state->top[free_at].count = 1;
		return;
	}
	for (int i = 0; i < K; i++)
		state->top[i].count--;
	state->rounds++;
}
