/* SPDX-License-Identifier: MIT */
/* Ranges of forms. */
#include "rule.h"

#include "verifier/checker/machine/range.c"

RULE(range_meet)
{
	struct range r = { any128("lo"), any128("hi") };
	wide lo = any128("low"), hi = any128("high"), x = any128("x");

	assume(within(&r, x) && lo <= x && x <= hi);
	range_meet(&r, lo, hi);
	prove(within(&r, x), "that nothing is lost");
}

static bool is_near(wide n)
{
	return n >= -POWER(124) && n < POWER(124);
}

RULE(bits_of)
{
	wide x = any128("x");
	unsigned n = bits_of(x);

	prove(n < 128 && (x >> n == 0 || x >> n == -1), "that it has so many bits and a sign");
	prove(n >= 124 || is_near(x), "that it is below 2^124");
}

unsigned contract_bits_of(wide x)
{
	unsigned n = (unsigned)any64("bits");

	assume(n < 128 && (n >= 124 || is_near(x)));
	return n;
}

static bool is_small(wide n)
{
	return n >= -POWER(123) && n < POWER(123);
}

/* Products that are made do not wrap. */
RULE(times)
{
	wide a = any128("a"), b = any128("b"), r;

	ordered_products(true);
	if (!times(a, b, &r))
		return;
	prove(product_fits(a, b), "that the product does not wrap");
	prove(r == a * b, "the product");
	prove(is_small(r), "that there is room for sums");
}

bool contract_times(wide a, wide b, wide *r)
{
	if (choose("too large", 2))
		return false;
	assume(product_fits(a, b));
	*r = a * b;
	assume(is_small(*r));
	return true;
}

/* What lies between two numbers whose products do not wrap has a product that does not. */
RULE(product_between)
{
	wide k = any128("k"), lo = any128("lo"), x = any128("x"), hi = any128("hi");

	ordered_products(true);
	assume(lo <= x && x <= hi && product_fits(k, lo) && product_fits(k, hi));
	prove(product_fits(k, x), "that the product does not wrap");
}

RULE(range_add)
{
	struct range r = { any128("lo"), any128("hi") }, by = { any128("by_lo"), any128("by_hi") };
	struct range old = r, p;
	wide k = any128("k"), x = any128("x"), y = any128("y");

	ordered_products(false);
	replace("times", "contract_times");
	replace("bits_of", "contract_bits_of");
	assume(is_near(r.lo) && is_near(r.hi) && within(&r, y));
	assume(by.lo <= x && x <= by.hi);
	assume((k != 1) | (multiplied(k, x) == x));
	assume((k != 1) | ((multiplied(k, by.lo) == by.lo) & (multiplied(k, by.hi) == by.hi)));
	if (!range_add(&r, k, by))
		return;
	assume(product_fits(k, x)); /* product_between */
	p.lo = k * by.lo < k * by.hi ? k * by.lo : k * by.hi;
	p.hi = k * by.lo < k * by.hi ? k * by.hi : k * by.lo;
	prove(p.lo <= k * x && k * x <= p.hi, "the product's range");
	prove(old.lo + p.lo <= old.lo + k * x && old.hi + k * x <= old.hi + p.hi, "a half");
	prove(r.lo <= y + k * x, "the sum's least");
	prove(y + k * x <= r.hi, "the sum's greatest");
	prove(is_near(r.lo) && is_near(r.hi), "that there is room for another");
}

/*
 * The sums that a statement is about: `to` is `from` + k * x. What rule range_add says of any two
 * numbers in the two ranges is said of these.
 */
static struct {
	unsigned count;
	wide k[4], x[4];
	big from[4], to[4];
} chain;

static void chain_add(big from, int64_t k, uint32_t id)
{
	unsigned i = chain.count++;

	chain.k[i] = k;
	chain.x[i] = ghost[id];
	chain.from[i] = from;
	chain.to[i] = from + product(k, ghost[id]);
}

/* The form's number and each of its terms added to it; each of the terms alone. */
void chain_form(const struct form *f)
{
	chain.count = 0;
	if (!f->v[0])
		return;
	chain_add(f->c, f->k[0], f->v[0]);
	if (!f->v[1])
		return;
	chain_add(chain.to[0], f->k[1], f->v[1]);
	chain_add(0, f->k[0], f->v[0]);
	chain_add(0, f->k[1], f->v[1]);
}

bool contract_range_add(struct range *r, wide k, struct range by)
{
	struct range sum = { any128("sum_lo"), any128("sum_hi") };

	prove(is_near(r->lo) && is_near(r->hi), "that there is room for a sum");
	if (choose("too large", 2))
		return false;
	assume(is_near(sum.lo) && is_near(sum.hi));
	for (unsigned i = 0; i < chain.count; i++)
		assume((k != chain.k[i]) | !within(&by, chain.x[i]) | !within(r, chain.from[i]) |
		       within(&sum, chain.to[i]));
	*r = sum;
	return true;
}

RULE(form_range)
{
	unsigned n = 1 + choose("variables", 2);
	struct form f;
	struct range r;

	opaque_products();
	replace("range_add", "contract_range_add");
	any_state(n);
	f = choose_form(n);
	chain_form(&f);
	r = form_range(&m, &f);
	prove(bounds(&r, integer(&f)), "the form's range");
}

RUN_RULE(form_range_fact)
{
	struct form f;
	struct range r;

	any_state(2);
	any_fact(6);
	if (choose("two", 2))
		any_fact(6);
	f = any_form(6);
	r = form_range(&m, &f);
	prove(bounds(&r, integer(&f)), "the form's range");
}

/* A sum or difference of two variables, a fact that says nearly all of it. */
static void near_fact(unsigned of)
{
	struct fact *f = &m.s.fact[m.s.facts++];
	big n;

	f->f = any_form(of);
	f->f.c = 0;
	f->f.k[0] = 1;
	f->f.k[1] = choose("minus", 2) ? -1 : 1;
	n = integer(&f->f);
	assume(n > INT64_MIN && n < INT64_MAX);
	f->lo = (int64_t)n - (int64_t)choose("below", 2);
	f->hi = (int64_t)n + (int64_t)choose("above", 2);
}

/* Three variables: what two facts say together of a form of which neither has both. */
RUN_RULE(form_range_facts)
{
	struct form f;
	struct range r;

	any_state(3);
	near_fact(10);
	near_fact(12);
	if (choose("three", 2))
		any_fact(6);
	f = any_form(6);
	r = form_range(&m, &f);
	prove(bounds(&r, integer(&f)), "the form's range");
}

/* Variable `id` becomes a quotient of a form of those before it. */
static void any_quotient(uint32_t id)
{
	struct def *d = &m.def[m.defs];
	struct var *v = &m.s.var[m.s.vars];
	big q, n;
	wide near;

	d->id = v->id = id;
	d->kind = DEF_FLOOR;
	d->factor = choose("plain", 2) ? 1 : any64("factor");
	d->shift = (uint8_t)choose("shift", symbolic() ? 64 : 4) * (choose("far", 2) ? 15 : 1);
	d->f = choose("plain", 2) ? (struct form){ .k = { 1 }, .v = { 1 } }
				  : any_form(id == 3 ? 2u << choose("of", 2) : 2);
	n = (big)d->factor * integer(&d->f);
	q = n >> d->shift;
	assume(q >= INT64_MIN && q <= UINT64_MAX);
	ghost[id] = (wide)q;
	near = low(any64("near"), 63);
	v->negative = q < 0;
	var_set(v, (wide)q - (q > near ? near : 0), (wide)q + (q < INT64_MAX - near ? near : 0));
	m.s.vars++;
	m.defs++;
}

/* Variables that are quotients of others: floor(factor * f / 2^shift). */
RUN_RULE(form_range_quotient)
{
	bool two = choose("two", 2);
	struct form f;
	struct range r;

	any_state(1);
	any_quotient(2);
	if (two)
		any_quotient(3);
	assume(admits());
	f = any_form(two ? 6 + 2 * choose("of", 4) : 6); /* variables 1 to 3: two of them at most */
	r = form_range(&m, &f);
	prove(bounds(&r, integer(&f)), "the form's range");
}

/* A sum of a number and a quotient in a register, where a node ends: what is known of it then. */
RUN_RULE(keep_defined)
{
	any_state(1);
	any_quotient(2);
	assume(admits());
	m.s.reg[FAY_RAX] =
		(struct value){ any_form(6), KIND_NUMBER, 0, 0xff, (uint8_t)choose_bits() };
	check_collect(&m);
	prove(admits(), "what is kept");
}
