/* SPDX-License-Identifier: MIT */
/* Radix sort of words of 32 bits, 4096 at most, by bytes from the lowest on, in local state. */
#include "kernel.h"

#define MOST 4096u

struct sort {
	uint32_t word[2][MOST], place[256];
};

__attribute__((noinline)) static void pass(uint32_t *place, const uint32_t *from, uint32_t *to,
					   uint64_t n, unsigned shift)
{
	uint32_t sum = 0;

	for (unsigned k = 0; k < 256; k++)
		place[k] = 0;
	for (uint64_t i = 0; i < n; i++)
		place[from[i] >> shift & 255]++;
	for (unsigned k = 0; k < 256; k++) {
		uint32_t count = place[k];

		place[k] = sum;
		sum += count;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint32_t v = from[i];

		to[place[v >> shift & 255]++ & (MOST - 1)] = v;
	}
}

KERNEL(33792)
{
	struct sort *s = local_state;
	uint64_t at = 0, n;
	uint32_t sum = 0;

	for (; at + 4 <= size && at < 4 * MOST; at += 4)
		s->word[0][at / 4] = load32(data + at);
	n = at / 4;
	for (unsigned shift = 0; shift < 32; shift += 16) {
		pass(s->place, s->word[0], s->word[1], n, shift);
		pass(s->place, s->word[1], s->word[0], n, shift + 8);
	}
	for (uint64_t i = 0; i < n; i++)
		sum = sum * 31 + s->word[0][i];
	return sum;
}
