/* SPDX-License-Identifier: MIT */
// A loop over an array that ends at a value, or at the array's end.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t sum, ended, open;
};

PROBE("libc!writev")
{
	uint32_t v[16];
	unsigned i = 0;

	if (READ(v, event->arg[1]))
		return;
	for (; i < 16; i++) {
		if (v[i] == 0 || v[i] == UINT32_MAX)
			break;
		state->sum += v[i];
	}
	if (i < 16)
		state->ended++;
	else
		state->open++;
}
