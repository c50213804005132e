/* SPDX-License-Identifier: MIT */
// Additions and multiplications that are checked for overflow.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t added, multiplied, signed_overflow;
	uint64_t total;
};

PROBE("libc!write")
{
	uint64_t a;
	int32_t b;
	int64_t c;

	if (__builtin_add_overflow(state->total, event->arg[3], &a)) {
		state->added++;
		a = 0;
	}
	state->total = a;
	if (__builtin_mul_overflow((int32_t)event->arg[2], (int32_t)event->arg[0], &b))
		state->multiplied++;
	if (__builtin_sub_overflow((int64_t)event->arg[5], (int64_t)event->arg[3], &c))
		state->signed_overflow++;
}
