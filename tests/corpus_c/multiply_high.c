/* SPDX-License-Identifier: MIT */
// The high half of a product of 64-bit numbers, made of four 32-bit products.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t high, low, carries;
};

PROBE("libc!write")
{
	uint64_t x = event->arg[3], y = event->arg[5];
	uint64_t xl = (uint32_t)x, xh = x >> 32, yl = (uint32_t)y, yh = y >> 32;
	uint64_t ll = xl * yl, lh = xl * yh, hl = xh * yl, hh = xh * yh;
	uint64_t middle = (ll >> 32) + (uint32_t)lh + (uint32_t)hl;

	state->high ^= hh + (lh >> 32) + (hl >> 32) + (middle >> 32);
	state->low ^= middle << 32 | (uint32_t)ll;
	state->carries += middle >> 32;
}
