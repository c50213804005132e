/* SPDX-License-Identifier: MIT */
// A dense switch of sixteen cases, each with its own work.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t a, b, c, d;
};

PROBE("libc!fcntl")
{
	uint64_t x = event->arg[3];

	switch (event->arg[0] & 15) {
	case 0: state->a += x; break;
	case 1: state->b -= x; break;
	case 2: state->c ^= x; break;
	case 3: state->d |= x; break;
	case 4: state->a &= x; break;
	case 5: state->b += x * 3; break;
	case 6: state->c = ~state->c; break;
	case 7: state->d >>= x & 63; break;
	case 8: state->a <<= x & 63; break;
	case 9: state->b = state->a; break;
	case 10: state->c += state->d; break;
	case 11: state->d = x % 1000; break;
	case 12: state->a = x / 10; break;
	case 13: state->b ^= state->c << 1; break;
	case 14: state->c -= state->a; break;
	case 15: state->d = __builtin_bswap64(x); break;
	}
}
