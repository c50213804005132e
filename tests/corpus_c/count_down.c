/* SPDX-License-Identifier: MIT */
/* Loops that count down in the way of C: `i-- > 0`. */
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t calls, sum;
	uint32_t a[12];
	uint64_t b[40];
};

PROBE("libc!write")
{
	uint64_t x = event->arg[2], y = event->arg[3];

	state->calls++;
	for (unsigned i = 11; i-- > 0;)
		if (state->a[i] < (uint32_t)x + i)
			state->a[i] += (uint32_t)(x >> (i & 7)) | state->a[(x + i) % 12];
		else
			x = x / (i + 1) ^ y;
	for (unsigned i = (unsigned)y & 31; i-- > 0;) {
		if (state->b[i] == x)
			continue;
		state->b[i] ^= x * (i + y);
		state->sum += state->b[39 - i];
	}
	for (unsigned i = 12; i-- > 0;) {
		switch (state->a[i] % 5) {
		case 0:
			x += state->b[i * 3];
			break;
		case 1:
			y ^= x >> (i & 63);
			break;
		case 2:
			if (x == y)
				return;
			break;
		default:
			state->sum -= x;
		}
	}
}
