/* SPDX-License-Identifier: MIT */
// A token bucket: at most 100 events a second, bursts of 20.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t tokens, before; /* tokens times 1000000 */
	uint64_t passed, held;
};

PROBE("libc!write")
{
	uint64_t elapsed = event->time - state->before;

	if (elapsed > 1000000000)
		elapsed = 1000000000;
	state->before = event->time;
	state->tokens += elapsed / 10;
	if (state->tokens > 20000000)
		state->tokens = 20000000;
	if (state->tokens >= 1000000) {
		state->tokens -= 1000000;
		state->passed++;
	} else {
		state->held++;
	}
}
