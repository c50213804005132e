/* SPDX-License-Identifier: MIT */
/* What is learned. */
#include "rule.h"

#include "verifier/checker/machine/learn.c"

RULE(divide)
{
	wide n = any128("n"), q;
	uint64_t d = any64("d");

	opaque_products();
	assume(d != 0 && n > -POWER(126) && n < POWER(126));
	q = divide(n, d);
	prove((n < POWER(64)) | (q == n), "that it is large enough");
	if (n < -POWER(64))
		n = -POWER(64); /* as good as that */
	assume(n < POWER(64));
	/* (-1 - q) * d is -d - q * d, as far as both are words */
	assume(!symbolic() || multiplied(q, d) == -multiplied(-1 - q, d) - (wide)d);
	prove(multiplied(q, d) <= n, "the quotient");
	prove(n - multiplied(q, d) < d, "the rest");
}

/* x <= q where x * d <= n: what rule divide says, of the variables in hand and their negatives. */
wide contract_divide(wide n, uint64_t d)
{
	wide q = any128("quotient");

	assume(q >= -POWER(126) && q <= POWER(126));
	for (uint32_t id = 1; id <= m.s.vars; id++) {
		wide x = ghost[id], p = multiplied(d, x), minus = multiplied(d, -x);

		assume(product_fits(d, x));
		assume(minus == -p);
		assume((x <= q) | (p > n));
		assume((-x <= q) | (minus > n));
	}
	return q;
}

RUN_RULE(common_factor)
{
	uint64_t a = any64("a"), b = any64("b"), d;

	assume(a || b);
	d = common_factor(a, b);
	prove(d && a % d == 0 && b % d == 0, "that it divides both");
}

RULE(var_narrow)
{
	wide lo = any128("least"), hi = any128("most");
	struct var old;

	any_state(1);
	assume_begin(&m);
	old = m.s.var[0];
	assume(lo <= ghost[1] && ghost[1] <= hi);
	prove(var_narrow(&m.s.var[0], lo, hi), "that it can be");
	prove(admits(), "that nothing is lost");
	assume_undo(&m);
	prove(m.s.var[0].lo == old.lo && m.s.var[0].hi == old.hi &&
		      m.s.var[0].negative == old.negative,
	      "that it is taken back");
}

/* Any range that has the variable's number, if it is between the bounds. */
bool contract_var_narrow(struct var *v, wide lo, wide hi)
{
	wide n = ghost[v->id];
	bool so = (lo <= n) & (n <= hi), ok = any64("narrowed") & 1;
	struct range r;

	v->lo = any64("narrowed_lo");
	v->hi = any64("narrowed_hi");
	v->negative = choose("narrowed_sign", 2);
	r = var_range(v);
	assume(!so | (ok & within(&r, n)));
	return ok;
}

RULE(narrow_one)
{
	int64_t k = (int64_t)any64("k");
	wide lo = any128("least"), hi = any128("most"), n;

	opaque_products();
	replace("divide", "contract_divide");
	replace("var_narrow", "contract_var_narrow");
	any_state(1);
	n = product(k, ghost[1]);
	assume(k != 0);
	assume(((k != 1) | (n == ghost[1])) & ((k != -1) | (n == -ghost[1])));
	if (symbolic() && k < 0) {
		assume(multiplied(-(wide)k, ghost[1]) == -multiplied(k, ghost[1]));
		prove(multiplied(-(uint64_t)k, ghost[1]) == -n, "the product with -k");
	} else if (symbolic()) {
		prove(multiplied((uint64_t)k, ghost[1]) == n, "the product");
	}
	assume(lo > -POWER(125));
	assume(hi < POWER(125));
	assume(lo <= n);
	assume(n <= hi);
	prove(narrow_one(&m, 1, k, lo, hi), "that it can be");
	prove(admits(), "that nothing is lost");
}

/* Sides without a bound. */
RUN_RULE(narrow_one_side)
{
	bool side = choose("side", 2);
	int64_t k = (int64_t)any64("k");
	wide bound = any128("bound"), n;

	any_state(1);
	n = product(k, ghost[1]);
	assume(k && (side ? bound <= n : n <= bound) && bound > -POWER(125) && bound < POWER(125));
	prove(narrow_one(&m, 1, k, side ? bound : -UNKNOWN, side ? UNKNOWN : bound),
	      "that it can be");
	prove(admits(), "that nothing is lost");
}

/* As rule narrow_one says, of the variable that is narrowed. */
bool contract_narrow_one(struct machine *of, uint32_t id, int64_t k, wide lo, wide hi)
{
	big n = product(k, ghost[id]);
	struct var *v = var_find(&of->s, id);
	bool so = ((lo <= -UNKNOWN) | (lo <= n)) & ((hi >= UNKNOWN) | (n <= hi)), ok;
	struct range r;

	ok = any64("narrowed") & 1;
	v->lo = any64("narrowed_lo");
	v->hi = any64("narrowed_hi");
	v->negative = any64("narrowed_sign") & 1;
	r = var_range(v);
	assume(!so | (ok & within(&r, ghost[id])));
	return ok;
}

RUN_RULE(narrow_both)
{
	wide lo = any128("least"), hi = any128("most");
	struct form f;
	big n;

	opaque_products();
	replace("narrow_one", "contract_narrow_one");
	replace("range_add", "contract_range_add");
	any_state(2);
	f = any_form(6);
	f.c = 0;
	n = integer(&f);
	chain_form(&f);
	assume(lo >= -UNKNOWN && hi <= UNKNOWN);
	assume((lo <= -UNKNOWN || lo <= n) && (hi >= UNKNOWN || n <= hi));
	prove(narrow_both(&m, &f, lo, hi), "that it can be");
	prove(admits(), "that nothing is lost");
}

/* What may come of narrowing: any ranges; where the condition is so, such as have what is there. */
static bool narrowed(struct machine *of, bool so)
{
	bool ok = any64("narrowed") & 1;

	for (unsigned i = 0; i < of->s.vars; i++) {
		struct var *v = &of->s.var[i];
		struct range r;

		v->lo = any64("narrowed_lo");
		v->hi = any64("narrowed_hi");
		v->negative = any64("narrowed_sign") & 1;
		r = var_range(v);
		assume(!so | (ok & within(&r, ghost[v->id])));
	}
	return ok;
}

bool contract_narrow_both(struct machine *of, const struct form *f, wide lo, wide hi)
{
	struct form g = *f;
	big n;
	bool so;

	g.c = 0;
	n = integer(&g);
	so = ((lo <= -UNKNOWN) | (lo <= n)) & ((hi >= UNKNOWN) | (n <= hi));
	return narrowed(of, so);
}

/* A fact that is so; its form is not that of f, but the rule is about what holds, not which. */
void contract_form_fact(struct machine *of, const struct form *f, wide lo, wide hi)
{
	struct form g = *f;
	big n;

	g.c = 0;
	n = integer(&g);
	prove(lo <= n && n <= hi, "that the fact is so");
	of->s.facts = 0;
	any_fact(6);
}

bool contract_form_narrow(struct machine *of, const struct form *f, wide lo, wide hi)
{
	big n = integer(f);
	bool so = (lo <= n) & (n <= hi);

	return narrowed(of, so);
}

/* Twice the same form: the fact that is there is met. */
RUN_RULE(form_fact)
{
	struct form f;

	any_state(2);
	if (choose("fact", 2))
		any_fact(6);
	f = any_form(6);
	f.c = 0;
	for (unsigned i = 0; i < 2; i++) {
		wide lo = any128("least"), hi = any128("most");

		assume(lo > -POWER(102) && hi < POWER(102));
		assume(lo <= integer(&f) && integer(&f) <= hi);
		form_fact(&m, &f, lo, hi);
		prove(admits(), "that the fact is so");
	}
}

RUN_RULE(form_narrow)
{
	unsigned n = 1 + choose("variables", 2);
	wide lo = any128("least"), hi = any128("most");
	struct form f;

	opaque_products();
	replace("form_range", "contract_form_range");
	replace("narrow_one", "contract_narrow_one");
	replace("narrow_both", "contract_narrow_both");
	replace("form_fact", "contract_form_fact");
	any_state(n);
	if (n == 2 && choose("fact", 2))
		any_fact(6);
	f = choose_form(n);
	assume(lo > -POWER(110) && hi < POWER(110) && lo <= integer(&f) && integer(&f) <= hi);
	prove(form_narrow(&m, &f, lo, hi), "that it can be");
	prove(admits(), "that nothing is lost");
}

RUN_RULE(form_window)
{
	unsigned n = 1 + choose("variables", 2), bits = choose_bits();
	wide lo = any128("least"), hi = any128("most");
	uint64_t before;
	struct form f;

	opaque_products();
	replace("form_range", "contract_form_range");
	replace("form_narrow", "contract_form_narrow");
	any_state(n);
	if (n == 2 && choose("fact", 2))
		any_fact(6);
	f = choose_form(n);
	assume(lo <= hi && hi - lo < POWER(bits) && lo > -POWER(66) && hi < POWER(66));
	before = (uint64_t)integer(&f);
	/* some number of the window is congruent to it */
	assume(low((uint64_t)((wide)integer(&f) - lo), bits) <= hi - lo);
	prove(form_window(&m, &f, bits, lo, hi), "that it can be");
	admit_readings();
	prove(admits(), "that nothing is lost");
	prove(low((uint64_t)integer(&f), 64) == low(before, 64), "that the form is what it was");
}

/* A word of which nothing is known, and a fact that it may be tied to. */
RUN_RULE(form_window_word)
{
	wide lo = any128("least"), hi = any128("most");
	struct form f = { .c = (int64_t)any64("c"), .k = { 1 }, .v = { 1 } };
	uint64_t before;

	any_state(2);
	m.s.var[0].negative = 0;
	m.s.var[0].lo = 0;
	m.s.var[0].hi = UINT64_MAX;
	ghost[1] = (wide)any64("x");
	if (choose("fact", 2)) {
		m.s.facts = 1;
		m.s.fact[0] = (struct fact){ { 0, { 1, -1 }, { 1, 2 } }, INT64_MIN, INT64_MAX };
		*(choose("side", 2) ? &m.s.fact[0].lo : &m.s.fact[0].hi) = (int64_t)any64("fact");
	}
	assume(admits());
	assume(lo <= hi && hi - lo < POWER(64) && lo > -POWER(66) && hi < POWER(66));
	before = (uint64_t)integer(&f);
	assume((uint64_t)((wide)integer(&f) - lo) <= hi - lo);
	prove(form_window(&m, &f, 64, lo, hi), "that it can be");
	admit_readings();
	prove(admits(), "that nothing is lost");
	prove((uint64_t)integer(&f) == before, "that the form is what it was");
}
