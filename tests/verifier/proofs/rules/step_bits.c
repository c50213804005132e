/* SPDX-License-Identifier: MIT */
/* Shifts and bits. */
#include "rule.h"

#include "verifier/checker/machine/step_bits.c"

static struct range any_count(unsigned *n)
{
	struct range by = { any128("by_lo"), any128("by_hi") };

	*n = (unsigned)any64("count");
	assume(0 <= by.lo && by.lo <= *n && *n <= by.hi && by.hi < 64);
	return by;
}

RULE(ones)
{
	uint64_t hi = any64("hi"), x = any64("x");

	assume(x <= hi);
	prove((x & (uint64_t)ones(hi)) == x, "that no number up to it has a bit beyond");
}

RUN_RULE(shift_left)
{
	unsigned bits = choose_width(), n;
	struct range by = any_count(&n);
	struct value a, r;
	uint64_t x;

	a = any_operand(bits, &x);
	r = shift_left(&m, &a, by, bits);
	prove_result(&r, low(x << n, bits), bits, x, x);
}

RUN_RULE(shift_right)
{
	unsigned bits = choose_width(), n;
	bool sign = choose("sign", 2);
	struct range by = any_count(&n);
	struct value a, r;
	uint64_t x;

	a = any_operand(bits, &x);
	r = shift_right(&m, &a, by, bits, sign);
	prove_result(&r, low((uint64_t)(reading(x, bits, sign) >> n), bits), bits, x, x);
}
