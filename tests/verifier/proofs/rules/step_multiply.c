/* SPDX-License-Identifier: MIT */
/* Multiplication and division. */
#include "rule.h"

#include "verifier/checker/machine/step_multiply.c"

RUN_RULE(product_high)
{
	unsigned bits = choose_width();
	struct value a, b, r;
	uint64_t x, y;

	replace_reads();
	any_state(1);
	a = any_number(bits, &x);
	b = choose("constant", 2) ? any_number(bits, &y) : value_number(y = low(any64("y"), bits));
	r = product_high(&m, &a, &b, bits);
	prove_result(&r, (uint64_t)((unsigned __int128)x * y >> bits), bits, x, y);
}

RUN_RULE(value_product)
{
	unsigned bits = choose_width();
	struct value a, b, r;
	uint64_t x, y;

	replace_reads();
	any_state(1);
	a = any_number(bits, &x);
	b = choose("constant", 2) ? any_number(bits, &y) : value_number(y = low(any64("y"), bits));
	value_product(&m, &a, &b, bits, &r);
	/* the new variable is a factor of a constant product, or the product itself */
	if (value_range(&m, &a, bits, true).lo == value_range(&m, &a, bits, true).hi)
		prove_result(&r, low(x * y, bits), bits, x, y);
	else
		prove_result(&r, low(x * y, bits), bits,
			     (wide)signed_low(x, bits) * signed_low(y, bits), x);
}

RUN_RULE(quotient)
{
	wide n = any128("n"), d = any128("d"), q;

	assume(d != 0 && -POWER(64) < n && n < POWER(64) && 0 < d && d < POWER(64));
	q = quotient(n, d);
	prove(n >= 0 ? q * d <= n && n < q * d + d : q * d >= n && n > q * d - d,
	      "the quotient rounded to zero");
}
