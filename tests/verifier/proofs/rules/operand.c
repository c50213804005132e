/* SPDX-License-Identifier: MIT */
/* Operands, sums and products. */
#include "rule.h"

#include "verifier/checker/machine/operand.c"

/* Whether the variables made since can be such that v is n. */
static void prove_sum(const struct value *v, uint64_t n, unsigned bits)
{
	struct var *new = var_find(&m.s, 3);
	struct range r;

	if (new) {
		r = var_range(new);
		ghost[3] = (wide)reading(n, bits, false);
		if (!within(&r, ghost[3]))
			ghost[3] = (wide)reading(n, bits, true);
		prove(within(&r, ghost[3]), "the new variable's range");
	}
	prove(low(number_of(v), bits) == n, "the sum");
}

/* Of one bit width: numbers of fewer bits become words, rule value_word. */
RUN_RULE(sum)
{
	unsigned bits = choose_width();
	int64_t k = choose("minus", 2) ? 1 : -1;
	struct value a, b, r;
	uint64_t x, y;

	any_state(2);
	a = (struct value){ any_form(choose("one", 2) ? 2 : 6), KIND_NUMBER, 0, 0xff,
			    (uint8_t)bits };
	b = (struct value){ any_form(choose("two", 2) ? 4 : 6), KIND_NUMBER, 0, 0xff,
			    (uint8_t)bits };
	x = number_of(&a);
	y = number_of(&b);
	r = sum(&m, &a, &b, k, bits);
	if (var_find(&m.s, 3))
		return; /* three variables: value_fresh */
	prove_sum(&r, low(x + (uint64_t)k * y, bits), bits);
}

RUN_RULE(value_word)
{
	unsigned bits = choose_width();
	struct value v;
	struct form f;
	uint64_t n;

	any_state(1);
	v = any_value(2);
	n = low(number_of(&v), bits);
	f = value_word(&m, &v, bits);
	if (f.v[0] == 2) {
		struct range r = var_range(var_find(&m.s, 2));

		ghost[2] = n;
		prove(within(&r, n), "the new variable's range");
	}
	prove(low((uint64_t)integer(&f), bits) == n, "the word");
}

RUN_RULE(value_settle)
{
	unsigned bits = choose_width(), b;
	struct value v, was;
	uint64_t n;

	any_state(2);
	v = was = any_value(choose("none", 4) ? choose("two", 2) ? 6 : 2 : 0);
	n = number_of(&v);
	b = v.bits < bits ? v.bits : bits;
	value_settle(&m, &v, bits);
	for (unsigned i = 0; i < 2 && v.f.v[i]; i++) {
		struct range r = var_range(var_find(&m.s, v.f.v[i]));

		if (v.f.v[i] == 3) /* the low bits, and the rest */
			ghost[3] = low(n, b) / (uint64_t)v.f.k[i];
		else if (v.f.v[i] == 4)
			ghost[4] = low(n, was.bits) >> b;
		prove(within(&r, ghost[v.f.v[i]]), "a variable's range");
	}
	prove(low(number_of(&v), was.bits) == low(n, was.bits), "the number");
	prove(was.f.v[0] || number_of(&v) == n, "the constant");
}
