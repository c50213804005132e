/* SPDX-License-Identifier: MIT */
/* Ranges of forms: by their variables, by facts, by what quotients are of. */
#include "form.h"

static const struct range everything = { -UNKNOWN, UNKNOWN };

static unsigned bits_of(wide x)
{
	uint64_t high, low;

	if (x < 0)
		x = -(x + 1);
	high = (uint64_t)(x >> 64);
	low = (uint64_t)x;
	return high  ? 128 - (unsigned)__builtin_clzll(high)
	       : low ? 64 - (unsigned)__builtin_clzll(low)
		     : 0;
}

/* *r = a * b. False: too large. */
static bool times(wide a, wide b, wide *r)
{
	if (bits_of(a) + bits_of(b) > 122)
		return false;
	*r = a * b;
	return true;
}

void range_meet(struct range *r, wide lo, wide hi)
{
	if (lo > r->lo)
		r->lo = lo;
	if (hi < r->hi)
		r->hi = hi;
}

/* So many bits and a sign. */
static inline bool fits(wide x, unsigned bits)
{
	return (x + POWER(bits)) >> (bits + 1) == 0;
}

/* *r becomes k times it. */
static bool range_scale(struct range *r, wide k)
{
	wide a, b;

	if (!times(k, r->lo, &a) || !times(k, r->hi, &b))
		return false;
	*r = (struct range){ a < b ? a : b, a < b ? b : a };
	return true;
}

bool range_add(struct range *r, wide k, struct range by)
{
	if (k == 1 ? !fits(by.lo, 121) || !fits(by.hi, 121) : !range_scale(&by, k))
		return false;
	r->lo += by.lo;
	r->hi += by.hi;
	return fits(r->lo, 123) && fits(r->hi, 123);
}

/* A sum of up to four multiples of variables, 2^-shift of it, with what quotients lack. */
struct sum {
	unsigned terms, shift;
	wide k[4];
	uint32_t v[4];
	struct range rest;
};

static bool sum_add(struct sum *s, uint32_t v, wide k)
{
	for (unsigned i = 0; i < s->terms; i++)
		if (s->v[i] == v) {
			s->k[i] += k;
			return bits_of(s->k[i]) < 122;
		}
	if (s->terms == 4)
		return false;
	s->v[s->terms] = v;
	s->k[s->terms++] = k;
	return true;
}

/* A quotient q = floor(factor * f / 2^shift): 2^shift * q is factor * f less something in
 * [0, 2^shift - 1]. The sum becomes one without q. */
static bool sum_replace(struct sum *s, unsigned at, const struct def *d)
{
	wide k = s->k[at], part;

	s->k[at] = s->k[--s->terms];
	s->v[at] = s->v[s->terms];
	for (unsigned i = 0; i < s->terms; i++)
		if (!times(s->k[i], POWER(d->shift), &s->k[i]))
			return false;
	if (!times(s->rest.lo, POWER(d->shift), &s->rest.lo) ||
	    !times(s->rest.hi, POWER(d->shift), &s->rest.hi) ||
	    !range_add(&s->rest, -k, (struct range){ 0, POWER(d->shift) - 1 }) ||
	    !times(k, d->factor, &k) || !range_add(&s->rest, k, (struct range){ d->f.c, d->f.c }))
		return false;
	for (unsigned i = 0; i < 2 && d->f.v[i]; i++)
		if (!times(k, d->f.k[i], &part) || !sum_add(s, d->f.v[i], part))
			return false;
	s->shift += d->shift;
	return s->shift < 112;
}

/*
 * x is 2^shift * q + e with q = floor(x / 2^shift), where the sum or one of its quotients names q:
 * then the two cancel out. False: nowhere.
 */
static bool sum_split(struct machine *m, struct sum *s)
{
	bool any = false;

	for (unsigned i = 0; i < m->defs; i++) {
		const struct def *d = &m->def[i];
		bool named = false;
		wide k;

		if (d->kind != DEF_FLOOR || d->factor != 1 || d->f.c || d->f.k[0] != 1 || d->f.v[1])
			continue;
		for (unsigned j = 0; j < s->terms; j++)
			named |= s->v[j] == d->id;
		for (unsigned j = 0; j < m->defs; j++)
			named |= m->def[j].kind == DEF_FLOOR && m->def[j].f.v[0] == d->id;
		for (unsigned j = 0; named && j < s->terms; j++) {
			k = s->k[j];
			if (s->v[j] != d->f.v[0] || bits_of(k) > 40 || d->shift > 60)
				continue;
			s->k[j] = s->k[--s->terms];
			s->v[j] = s->v[s->terms];
			sum_add(s, d->id, k * POWER(d->shift));
			range_add(&s->rest, k, (struct range){ 0, POWER(d->shift) - 1 });
			any = true;
			break;
		}
	}
	return any;
}

uint64_t common_factor(uint64_t a, uint64_t b)
{
	while (b) { /* at most 93 rounds: Fibonacci numbers are the worst */
		uint64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/* By the ranges of the variables that are named. */
static void sum_meet(struct machine *m, const struct sum *s, struct range *r)
{
	struct range all = s->rest;

	for (unsigned i = 0; i < s->terms; i++) {
		struct var *v = var_find(&m->s, s->v[i]);

		if (!v || !range_add(&all, s->k[i], var_range(v)))
			return;
	}
	range_meet(r, -(-all.lo >> s->shift), all.hi >> s->shift);
}

/* And as quotients are replaced by what they are of, the newest first. */
static struct range sum_range(struct machine *m, struct sum *s)
{
	struct range r = everything;

	for (unsigned round = 0; round < DEFS; round++) {
		const struct def *d = NULL;
		unsigned at = 0;

		sum_meet(m, s, &r);
		for (unsigned i = 0; i < s->terms; i++) {
			struct form q = { .k[0] = 1, .v[0] = s->v[i] };
			const struct def *other = check_definition(m, &q, DEF_FLOOR);

			if (other && (!d || other->id > d->id)) {
				d = other;
				at = i;
			}
		}
		if (!d || !sum_replace(s, at, d))
			break;
	}
	return r;
}

static void meet_quotients(struct machine *m, const struct form *f, bool split, struct range *r)
{
	struct sum s = { .terms = 0 };
	struct range whole;
	uint64_t g = 0;

	for (unsigned i = 0; i < 2 && f->v[i]; i++)
		sum_add(&s, f->v[i], f->k[i]);
	if (split && !sum_split(m, &s))
		return;
	whole = (struct range){ f->c + s.rest.lo, f->c + s.rest.hi };
	s.rest = (struct range){ 0, 0 };
	for (unsigned i = 0; i < s.terms; i++) {
		if (bits_of(s.k[i]) > 62)
			return;
		g = common_factor(g, (uint64_t)(s.k[i] < 0 ? -s.k[i] : s.k[i]));
	}
	for (unsigned i = 0; g && i < s.terms; i++)
		s.k[i] = (int64_t)s.k[i] / (int64_t)g;
	if (range_add(&whole, (wide)g, sum_range(m, &s)))
		range_meet(r, whole.lo, whole.hi);
}

static struct range plain_range(struct machine *m, const struct form *f)
{
	struct range r = { f->c, f->c };

	for (unsigned i = 0; i < 2 && f->v[i]; i++) {
		struct var *v = var_find(&m->s, f->v[i]);

		if (!v || !range_add(&r, f->k[i], var_range(v)))
			return everything;
	}
	return r;
}

/* Fact n / 4, times t, has one of f's variables as f has it: *rest is f without that. */
static bool without_fact(struct machine *m, const struct form *f, unsigned n, struct form *rest,
			 int64_t *t)
{
	const struct form *g = &m->s.fact[n / 4].f;
	int64_t k = f->k[n & 1], by = g->k[n >> 1 & 1];

	if (f->v[n & 1] != g->v[n >> 1 & 1] || k == INT64_MIN || k % by)
		return false;
	*t = k / by;
	*rest = *f;
	return form_plus(rest, g, -*t);
}

/* `rest`, that form's range, and t times the fact are what *r is the range of. */
static void meet_fact(const struct fact *fact, int64_t t, struct range rest, struct range *r)
{
	if (!range_add(&rest, t, (struct range){ fact->lo, fact->hi }))
		return;
	if (t > 0 ? fact->lo == INT64_MIN : fact->hi == INT64_MAX)
		rest.lo = -UNKNOWN; /* that side has no bound */
	if (t > 0 ? fact->hi == INT64_MAX : fact->lo == INT64_MIN)
		rest.hi = UNKNOWN;
	range_meet(r, rest.lo, rest.hi);
}

struct range form_range(struct machine *m, const struct form *f)
{
	struct range r = plain_range(m, f), near;
	struct form rest, far;
	int64_t t, u;

	for (unsigned n = 0; f->v[1] && n < 4u * m->s.facts; n++) { /* by one fact, and by two */
		if (!without_fact(m, f, n, &rest, &t))
			continue;
		near = plain_range(m, &rest);
		for (unsigned i = 0; rest.v[1] && i < 4u * m->s.facts; i++)
			if (without_fact(m, &rest, i, &far, &u))
				meet_fact(&m->s.fact[i / 4], u, plain_range(m, &far), &near);
		meet_fact(&m->s.fact[n / 4], t, near, &r);
	}
	for (unsigned split = 0; f->v[1] && m->defs && split < 2; split++)
		meet_quotients(m, f, split, &r);
	if (r.lo > r.hi) /* there is no such state; a range it shall be all the same */
		r.hi = r.lo;
	return r;
}
