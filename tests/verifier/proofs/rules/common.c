/* SPDX-License-Identifier: MIT */
/* States, forms and values, and what they are of. */
#include "rule.h"

wide ghost[GHOSTS];
struct machine m;
static struct shared shared;

/* So that runs with numbers meet the assumption. */
static wide between(wide x, const struct range *r)
{
	unsigned __int128 most = (unsigned __int128)(r->hi - r->lo);

	return r->lo + (wide)((unsigned __int128)(x - r->lo) % (most + 1));
}

static void any_variable(uint32_t id)
{
	struct var *v = &m.s.var[m.s.vars++];
	struct range r;

	v->id = id;
	v->negative = choose("negative", 2);
	v->lo = any64("lo");
	v->hi = any64("hi");
	r = var_range(v);
	ghost[id] = any128("x");
	if (!symbolic() && r.lo <= r.hi)
		ghost[id] = between(ghost[id], &r);
	assume(r.lo <= ghost[id] && ghost[id] <= r.hi);
}

void any_state(unsigned n)
{
	memset(&m, 0, sizeof(m));
	shared.next_id = n;
	m.shared = &shared;
	for (uint32_t id = 1; id <= n; id++)
		any_variable(id);
}

wide multiplied(wide a, wide b)
{
	return a * b;
}

wide product(int64_t k, wide x)
{
	if (symbolic())
		assume(product_fits(k, x));
	return k * x;
}

RULE(product_word)
{
	wide x = any128("x");

	ordered_products(true);
	assume(INT64_MIN <= x && x <= UINT64_MAX);
	prove(product_fits((int64_t)any64("k"), x), "that the product does not wrap");
}

big integer(const struct form *f)
{
	big n = f->c;

	for (unsigned i = 0; i < 2 && f->v[i]; i++)
		n += product(f->k[i], ghost[f->v[i]]);
	return n;
}

static bool fact_holds(const struct fact *f)
{
	big n = integer(&f->f);

	return (f->lo == INT64_MIN || n >= f->lo) && (f->hi == INT64_MAX || n <= f->hi);
}

void any_fact(unsigned of)
{
	struct fact *f = &m.s.fact[m.s.facts++];

	f->f = any_form(of);
	f->f.c = 0;
	assume(f->f.k[0] > 0);
	f->lo = (int64_t)any64("fact_lo");
	f->hi = (int64_t)any64("fact_hi");
	assume(fact_holds(f));
}

struct form any_form(unsigned of)
{
	struct form f = { .c = (int64_t)any64("c") };
	unsigned n = 0;

	for (uint32_t id = 1; id < GHOSTS && n < 2; id++) {
		if (!(of >> id & 1))
			continue;
		f.v[n] = id;
		f.k[n] = (int64_t)any64("k");
		assume(f.k[n++] != 0);
	}
	return f;
}

struct form choose_form(unsigned n)
{
	static const uint8_t sets[] = { 0, 2, 4, 6, 8, 10, 12 };

	return any_form(sets[choose("form", n == 1 ? 2 : n == 2 ? 4 : 7)]);
}

unsigned choose_bits(void)
{
	static const uint8_t some[] = { 8, 64 };

	if (!symbolic())
		return 1 + choose("bits", tiny() ? 5 : 64);
	return thorough() ? 1 + choose("bits", 64) : some[choose("bits", sizeof(some))];
}

unsigned choose_width(void)
{
	if (tiny())
		return 1 + choose("width", 5);
	return !symbolic() || thorough() ? 8u << choose("width", 4) : choose("width", 2) ? 64 : 8;
}

struct value any_value(unsigned of)
{
	return (struct value){ any_form(of), KIND_NUMBER, 0, 0xff, (uint8_t)choose_bits() };
}

uint64_t low(uint64_t n, unsigned bits)
{
	return bits >= 64 ? n : n & (((uint64_t)1 << bits) - 1);
}

int64_t signed_low(uint64_t n, unsigned bits)
{
	return bits >= 64 ? (int64_t)n : (int64_t)(n << (64 - bits)) >> (64 - bits);
}

uint64_t number_of(const struct value *v)
{
	return low((uint64_t)integer(&v->f), v->bits);
}

bool describes(const struct value *v, uint64_t n)
{
	return v->kind == KIND_NUMBER && number_of(v) == n;
}

int64_t factor(const struct form *f, uint32_t id)
{
	return f->v[0] == id ? f->k[0] : f->v[1] == id ? f->k[1] : 0;
}

bool within(const struct range *r, big n)
{
	return (r->lo <= n) & (n <= r->hi);
}

bool bounds(const struct range *r, big n)
{
	return ((r->lo <= -UNKNOWN) | (r->lo <= n)) & ((r->hi >= UNKNOWN) | (n <= r->hi));
}

bool admits(void)
{
	for (unsigned i = 0; i < m.s.vars; i++) {
		struct range r = var_range(&m.s.var[i]);

		if (!within(&r, ghost[m.s.var[i].id]))
			return false;
	}
	for (unsigned i = 0; i < m.s.facts; i++)
		if (!fact_holds(&m.s.fact[i]))
			return false;
	return true;
}

void admit_readings(void)
{
	for (unsigned i = 0; i < m.s.vars; i++) {
		struct var *v = &m.s.var[i];

		if (v->negative && ghost[v->id] > INT64_MAX)
			ghost[v->id] -= POWER(64);
	}
}

/* ---- results ---- */

big reading(uint64_t n, unsigned bits, bool sign)
{
	return sign ? (big)signed_low(n, bits) : (big)low(n, bits);
}

struct value any_number(unsigned bits, uint64_t *n)
{
	struct value v = any_value(2);

	if (v.bits > bits)
		v.bits = (uint8_t)bits;
	*n = number_of(&v);
	return v;
}

struct value any_operand(unsigned bits, uint64_t *n)
{
	replace_reads();
	any_state(1);
	return any_number(bits, n);
}

struct pair any_pair(unsigned bits)
{
	struct pair p;

	p.a = any_operand(bits, &p.x);
	if (choose("constant", 2)) {
		p.b = any_number(bits, &p.y);
	} else {
		p.y = low(any64("y"), bits);
		p.b = value_number(p.y);
	}
	return p;
}

static bool definition_holds(const struct def *d)
{
	big n = integer(&d->f), x = ghost[d->id];

	switch (d->kind) {
	case DEF_FLOOR: return x == (big)d->factor * n >> d->shift;
	case DEF_SIGN: return x == (signed_low((uint64_t)n, d->shift) < 0 ? -1 : 0);
	case DEF_ONES: return ((uint64_t)x & d->factor) == d->factor;
	default: return true;
	}
}

/* Whether r is n where the variable that was made is x. */
static bool would_be(const struct value *r, uint64_t n, unsigned bits, wide x)
{
	struct var *made = var_find(&m.s, 2);
	struct range range;
	bool ok;

	ghost[2] = x;
	ok = low(number_of(r), bits) == n;
	if (made) {
		range = var_range(made);
		ok &= within(&range, x);
	}
	for (unsigned i = 0; i < m.defs; i++)
		ok &= definition_holds(&m.def[i]);
	return ok & admits();
}

void prove_result(const struct value *r, uint64_t n, unsigned bits, wide a, wide b)
{
	unsigned w = r->bits < bits ? r->bits : bits;
	struct var *made = var_find(&m.s, 2);
	bool named = made && r->f.v[0] == 2 && r->f.k[0];
	unsigned shift = named ? (unsigned)__builtin_ctzll((uint64_t)r->f.k[0]) : 0;
	struct range range = made ? var_range(made) : (struct range){ 0, 0 };
	bool ok;

	prove(r->kind == KIND_NUMBER && r->bits >= 1 && r->bits <= 64, "that it is a number");
	prove(low(n, w) == n, "that it has no more bits");
	if (!made) {
		prove(would_be(r, n, w, 0), "the result");
	} else if (!named) {
		prove(would_be(r, n, w, range.lo), "the result, a variable unused");
	} else {
		ok = would_be(r, n, w, (wide)(reading(n, w, range.lo < 0) >> shift));
		if (!symbolic() || r->f.k[0] != (int64_t)1 << shift || r->f.c || r->f.v[1])
			ok |= would_be(r, n, w, a) | would_be(r, n, w, b);
		prove(ok, "the result");
	}
}
