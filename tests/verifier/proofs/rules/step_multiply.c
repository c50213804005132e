/* SPDX-License-Identifier: MIT */
/* Multiplication and division. */
#include "rule.h"

#include "verifier/checker/machine/step_multiply.c"

RUN_RULE(product_high)
{
	unsigned bits = choose_width();
	struct pair p = any_pair(bits);
	struct value r;

	r = product_high(&m, &p.a, &p.b, bits);
	prove_result(&r, (uint64_t)((unsigned __int128)p.x * p.y >> bits), bits, p.x, p.y);
}

RUN_RULE(value_product)
{
	unsigned bits = choose_width();
	struct pair p = any_pair(bits);
	struct value r;

	value_product(&m, &p.a, &p.b, bits, &r);
	/* the new variable is a factor of a constant product, or the product itself */
	if (value_range(&m, &p.a, bits, true).lo == value_range(&m, &p.a, bits, true).hi)
		prove_result(&r, low(p.x * p.y, bits), bits, p.x, p.y);
	else
		prove_result(&r, low(p.x * p.y, bits), bits,
			     (wide)signed_low(p.x, bits) * signed_low(p.y, bits), p.x);
}

RUN_RULE(quotient)
{
	wide n = any128("n"), d = any128("d"), q;

	assume(d != 0 && -POWER(64) < n && n < POWER(64) && 0 < d && d < POWER(64));
	q = quotient(n, d);
	prove(n >= 0 ? q * d <= n && n < q * d + d : q * d >= n && n > q * d - d,
	      "the quotient rounded to zero");
}
