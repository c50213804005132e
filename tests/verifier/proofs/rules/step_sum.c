/* SPDX-License-Identifier: MIT */
/* Logic. */
#include "rule.h"

#include "verifier/checker/machine/step_sum.c"

RUN_RULE(step_and)
{
	unsigned bits = choose_width();
	struct value a, b, r;
	uint64_t x, y;

	replace_reads();
	any_state(1);
	a = any_number(bits, &x);
	b = choose("constant", 2) ? any_number(bits, &y) : value_number(y = low(any64("y"), bits));
	r = step_and(&m, &a, &b, bits);
	prove_result(&r, x & y, bits, x, y);
}

RUN_RULE(either)
{
	unsigned bits = choose_width();
	bool exclusive = choose("exclusive", 2);
	struct value a, b, r;
	uint64_t x, y;

	replace_reads();
	any_state(1);
	a = any_number(bits, &x);
	b = choose("constant", 2) ? any_number(bits, &y) : value_number(y = low(any64("y"), bits));
	r = either(&m, &a, &b, bits, exclusive);
	prove_result(&r, exclusive ? x ^ y : x | y, bits, x, y);
}
