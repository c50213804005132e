/* SPDX-License-Identifier: MIT */
/* Logic. */
#include "rule.h"

#include "verifier/checker/machine/step_sum.c"

RUN_RULE(step_and)
{
	unsigned bits = choose_width();
	struct pair p = any_pair(bits);
	struct value r;

	r = step_and(&m, &p.a, &p.b, bits);
	prove_result(&r, p.x & p.y, bits, p.x, p.y);
}

RUN_RULE(step_or)
{
	unsigned bits = choose_width();
	bool exclusive = choose("exclusive", 2);
	struct pair p = any_pair(bits);
	struct value r;

	r = step_or(&m, &p.a, &p.b, bits, exclusive);
	prove_result(&r, exclusive ? p.x ^ p.y : p.x | p.y, bits, p.x, p.y);
}
