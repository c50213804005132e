/* SPDX-License-Identifier: MIT */
/* What is learned when a form is found to lie between bounds, and taking it back. */
#include "form.h"

void assume_begin(struct machine *m)
{
	struct shared *old = m->shared;

	old->vars = m->s.vars;
	old->facts = m->s.facts;
	memcpy(old->fact, m->s.fact, m->s.facts * sizeof(m->s.fact[0]));
	memcpy(old->var, m->s.var, m->s.vars * sizeof(m->s.var[0]));
}

void assume_undo(struct machine *m)
{
	const struct shared *old = m->shared;

	m->s.vars = old->vars;
	m->s.facts = old->facts;
	memcpy(m->s.fact, old->fact, old->facts * sizeof(m->s.fact[0]));
	memcpy(m->s.var, old->var, old->vars * sizeof(m->s.var[0]));
}

/* At least n / d rounded down, d > 0; just that where n is a word with a sign. */
static wide divide(wide n, uint64_t d)
{
	if (n >= POWER(64))
		return n;
	if (n < 0)
		return -1 - (wide)((n < -POWER(64) ? UINT64_MAX : (uint64_t)-(n + 1)) / d);
	return (uint64_t)n / d;
}

static bool var_narrow(struct var *v, wide lo, wide hi)
{
	struct range r = var_range(v);

	range_meet(&r, lo, hi);
	if (r.lo > r.hi)
		return false;
	var_set(v, r.lo, r.hi);
	return true;
}

/* lo <= k * v <= hi; -UNKNOWN and UNKNOWN are no bounds. */
static bool narrow_one(struct machine *m, uint32_t id, int64_t k, wide lo, wide hi)
{
	struct var *v = var_find(&m->s, id);
	wide t = -lo;

	if (!v || k == INT64_MIN)
		return true;
	if (k < 0) {
		lo = -hi;
		hi = t;
		k = -k;
	}
	if (k == 1)
		return var_narrow(v, lo, hi);
	return var_narrow(v, lo > -UNKNOWN ? -divide(-lo, (uint64_t)k) : lo,
			  hi < UNKNOWN ? divide(hi, (uint64_t)k) : hi);
}

/* Each of the two variables learns from the other. */
static bool narrow_both(struct machine *m, const struct form *f, wide lo, wide hi)
{
	for (unsigned i = 0; i < 2; i++) {
		struct var *other = var_find(&m->s, f->v[1 - i]);
		struct range rest = { 0, 0 };

		if (!other || !range_add(&rest, f->k[1 - i], var_range(other)))
			continue;
		if (!narrow_one(m, f->v[i], f->k[i], lo > -UNKNOWN ? lo - rest.hi : lo,
				hi < UNKNOWN ? hi - rest.lo : hi))
			return false;
	}
	return true;
}

static int64_t clamp(wide x)
{
	return x < INT64_MIN ? INT64_MIN : x > INT64_MAX ? INT64_MAX : (int64_t)x;
}

void form_fact(struct machine *m, const struct form *f, wide lo, wide hi)
{
	struct state *s = &m->s;
	struct fact fact = { .f = *f };
	uint64_t d;
	unsigned i;

	if (f->k[0] == INT64_MIN || f->k[1] == INT64_MIN)
		return;
	d = common_factor((uint64_t)(f->k[0] < 0 ? -f->k[0] : f->k[0]),
			  (uint64_t)(f->k[1] < 0 ? -f->k[1] : f->k[1]));
	if (f->k[0] < 0) {
		wide t = -lo;

		lo = -hi;
		hi = t;
	}
	for (i = 0; i < 2; i++)
		fact.f.k[i] = (f->k[0] < 0 ? -f->k[i] : f->k[i]) / (int64_t)d;
	fact.f.c = 0;
	fact.lo = clamp(-divide(-lo, d));
	fact.hi = clamp(divide(hi, d));
	for (i = 0; i < s->facts && !form_equal(&s->fact[i].f, &fact.f); i++)
		;
	if (i < s->facts) {
		fact.lo = fact.lo > s->fact[i].lo ? fact.lo : s->fact[i].lo;
		fact.hi = fact.hi < s->fact[i].hi ? fact.hi : s->fact[i].hi;
	} else if (s->facts == FACTS) {
		i = m->turn++ % FACTS;
	} else {
		s->facts++;
	}
	s->fact[i] = fact;
}

/* The same of a form whose range is known. */
static bool narrow_from(struct machine *m, const struct form *f, struct range r, wide lo, wide hi)
{
	if (r.lo > hi || r.hi < lo)
		return false;
	if (!f->v[0])
		return true;
	range_meet(&r, lo, hi);
	if (r.lo <= -POWER(100) || r.hi >= POWER(100))
		return true;
	lo = r.lo - f->c;
	hi = r.hi - f->c;
	if (!f->v[1]) {
		if (!narrow_one(m, f->v[0], f->k[0], lo, hi))
			return false;
	} else {
		form_fact(m, f, lo, hi);
		if (!narrow_both(m, f, lo, hi))
			return false;
	}
	for (unsigned i = 0; i < m->s.facts; i++) {
		const struct fact *fact = &m->s.fact[i];

		if (!narrow_both(m, &fact->f, fact->lo == INT64_MIN ? -UNKNOWN : fact->lo,
				 fact->hi == INT64_MAX ? UNKNOWN : fact->hi))
			return false;
	}
	return true;
}

bool form_narrow(struct machine *m, const struct form *f, wide lo, wide hi)
{
	return narrow_from(m, f, form_range(m, f), lo, hi);
}

static bool names(const struct form *f, uint32_t id)
{
	return f->v[0] == id || f->v[1] == id;
}

/* Whether the variable may be any word, and nothing that is known rests on how that is read. */
static bool unread(const struct machine *m, const struct var *v)
{
	for (unsigned i = 0; i < m->s.facts; i++)
		if (names(&m->s.fact[i].f, v->id))
			return false;
	for (unsigned i = 0; i < m->s.fills; i++)
		if (names(&m->s.fill[i].end, v->id))
			return false;
	for (unsigned i = 0; i < m->defs; i++)
		if (m->def[i].id == v->id || names(&m->def[i].f, v->id))
			return false;
	return !v->pin && !v->negative && v->lo == 0 && v->hi == UINT64_MAX;
}

bool form_window(struct machine *m, const struct form *f, unsigned bits, wide lo, wide hi)
{
	struct range r = form_range(m, f);
	wide first, last;
	struct var *v;

	if (r.lo <= -POWER(100) || r.hi >= POWER(100))
		return true;
	first = -((hi - r.lo) >> bits);
	last = (r.hi - lo) >> bits;
	if (first > last)
		return false;
	v = f->v[0] && !f->v[1] && f->k[0] == 1 ? var_find(&m->s, f->v[0]) : NULL;
	if (first < last && bits == 64 && v && unread(m, v) && lo - f->c >= INT64_MIN &&
	    hi - f->c <= INT64_MAX) {
		/* any word: it may as well be read as signed */
		var_set(v, INT64_MIN, INT64_MAX);
		return form_narrow(m, f, lo, hi);
	}
	return narrow_from(m, f, r, lo + first * POWER(bits), hi + last * POWER(bits));
}
