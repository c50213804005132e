/* SPDX-License-Identifier: MIT */
/* Arrays on the stack that loops fill before others read them, a small one and a large one. */
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t calls, sum;
	uint32_t small[16];
	uint64_t large[8];
};

PROBE("libc!write")
{
	uint64_t powers[150];
	uint32_t words[40];

	state->calls++;
	for (unsigned i = 0; i < 16; i++)
		words[i] = state->small[i] ^ (uint32_t)event->arg[2];
	for (unsigned i = 16; i < 40; i++)
		words[i] = words[i - 3] * 5 ^ words[i - 16];
	powers[0] = event->arg[3] | 1;
	for (unsigned i = 1; i < 150; i++)
		powers[i] = powers[i - 1] * 3 + words[i % 40];
	for (unsigned i = 0; i < 16; i++)
		state->small[i] += words[39 - i];
	for (unsigned i = 0; i < 8; i++)
		state->large[i] ^= powers[(event->arg[2] + i) % 150];
	state->sum += powers[149];
}
