/* SPDX-License-Identifier: MIT */
/* Values of which one stays ahead of the other: facts of a list. */
#include "certify_parts.h"

/* Is the form of a value, as it stands, its 64 bits? */
static bool whole(struct certify *k, const struct value *v)
{
	struct form f;

	return v->bits == 64 || (value_form(&k->w->m, v, v->bits, false, &f) && f.c == v->f.c);
}

/* Whether the value is a size that is passed: a fact had better name the size itself. */
static bool is_size(struct state *t, const struct value *v)
{
	const struct var *var = v->f.v[0] ? var_find(t, v->f.v[0]) : NULL;

	return var && var->pin >= PIN_SIZES;
}

/* Whether there is the same variable at `location`, as often. */
static bool same_as(struct state *t, uint32_t at, uint64_t location, const struct value *v)
{
	struct value own;
	const struct value *w = walk_number_at(t, at, location, &own);

	return certify_numeric(w) && w->f.v[0] == v->f.v[0] && w->f.k[0] == v->f.k[0] && !w->f.v[1];
}

/* Could a fact say how far what is at `other` is ahead of the head's variable i? */
static bool comparable(struct certify *k, uint32_t at, struct meaning *x, uint32_t i, uint64_t own,
		       uint64_t other)
{
	const struct place *p = &k->places[at];
	struct state *t = &k->w->t.s;
	struct value counted;
	const struct value *a = walk_locate(t, own);
	const struct value *b = walk_number_at(t, at, other, &counted);

	if (!certify_numeric(a) || !certify_numeric(b) ||
	    (b != &counted && (a->kind != b->kind || a->tag != b->tag)) || b->f.v[0] == a->f.v[0] ||
	    !b->f.v[0] || (b != &counted && is_size(t, b)) || !a->f.v[0] || a->f.v[1] ||
	    b->f.v[1] || !whole(k, a) || !whole(k, b))
		return false;
	for (uint32_t c = 0; c < i; c++)
		if (x[c].location == other)
			return false; /* the same pair the other way around */
	for (uint32_t q = 0; q < p->fact_count; q++)
		if ((p->facts[q].a == own && p->facts[q].b == other) ||
		    (same_as(t, at, p->facts[q].a, a) && same_as(t, at, p->facts[q].b, b)) ||
		    (same_as(t, at, p->facts[q].a, b) && same_as(t, at, p->facts[q].b, a)))
			return false;
	return true;
}

/* How far b is ahead of a in a state; makes the range wider by that. */
static bool ahead(struct certify *k, uint32_t at, const struct state *s, uint64_t a, uint64_t b,
		  struct range *all, bool first)
{
	struct range r;

	certify_assign(&k->w->m.s, s);
	k->w->m.defs = 0;
	if (!certify_ahead(k, at, a, b, &r))
		return false;
	all->lo = first || r.lo < all->lo ? r.lo : all->lo;
	all->hi = first || r.hi > all->hi ? r.hi : all->hi;
	return true;
}

/* The same in all states that the head is entered with, and at the edges back. */
static bool ahead_in_all(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			 uint64_t a, uint64_t b, struct range *all)
{
	bool ok = n > 0;

	for (uint32_t i = 0; ok && i < n; i++)
		ok = ahead(k, at, states[i], a, b, all, !i);
	for (const struct waiting *back = k->places[at].back;
	     ok && back && k->effort != EFFORT_HOPEFUL; back = back->next)
		ok = ahead(k, at, back->s, a, b, all, false);
	certify_assign(&k->w->m.s, &k->w->t.s);
	return ok;
}

/* How much is known more than by the ranges: a part of 2^20, and above all which one is greater.
 * First comes by how much a size that is passed is. */
static wide gain(uint64_t other, const struct range *known, const struct range *free)
{
	wide below = known->lo - free->lo, above = free->hi - known->hi,
	     width = free->hi - free->lo;
	bool passed = other >= LOCATION_SIZES && other < LOCATION_COUNTS;
	bool order = (known->lo >= 0 && (passed ? below > 0 : free->lo < 0)) ||
		     (known->hi <= 0 && free->hi > 0);

	return (order ? (wide)1 << (passed ? 41 : 40) : 0) +
	       ((below > above ? below : above) << 20) / (width + 1);
}

/* In the place of the one that says least, if there are as many as may be. */
static bool add_fact(struct place *p, const struct relation *fact)
{
	uint32_t at = 0;

	if (p->fact_count < FACTS) {
		p->facts[p->fact_count++] = *fact;
		return true;
	}
	for (uint32_t i = 1; i < FACTS; i++)
		if (p->facts[i].gain < p->facts[at].gain)
			at = i;
	if (p->facts[at].gain >= fact->gain)
		return false;
	p->facts[at] = *fact;
	return true;
}

/* A fact of the list that what is at `own`, variable i's value or one from before, and what is at
 * `other` differ by so much, if that says more than their ranges. */
static bool relate(struct certify *k, uint32_t at, struct state **states, uint32_t n,
		   struct meaning *x, uint32_t i, uint64_t own, uint64_t other)
{
	const wide most = (wide)1 << 62;
	struct place *p = &k->places[at];
	struct state *t = &k->w->t.s;
	struct range all, free;
	struct value counted;
	struct form f;

	if (!comparable(k, at, x, i, own, other) ||
	    !ahead_in_all(k, at, states, n, own, other, &all))
		return false;
	f = walk_number_at(t, at, other, &counted)->f;
	if (!form_add(&f, &walk_locate(t, own)->f, -1))
		return false;
	free = form_range(&k->w->m, &f);
	if (all.lo <= free.lo && all.hi >= free.hi)
		return false;
	/* only which is ahead, and by how little: the rest follows from ranges */
	return add_fact(p, &(struct relation){ .a = own,
					       .b = other,
					       .lo = all.lo < -most ? -most : all.lo,
					       .hi = all.hi > most ? most : all.hi,
					       .gain = gain(other, &all, &free) });
}

/* Where the variable stands that a loop around `at` counts by; 0: it is none. */
static uint64_t counted_at(const struct state *t, uint32_t at, uint32_t var)
{
	uint32_t pin = t->var[var].pin, which = 0;

	if (!pin || (pin > at && pin < PIN_SIZES))
		return 0;
	for (uint32_t i = 0; i < var; i++)
		which += t->var[i].pin == pin;
	return which > 255 ? 0 : certify_pinned_at(at, pin, which);
}

/* Whether what is known of the form's variable and a size comes from elsewhere: it is one of the
 * list's, and this is not the first time that it is there so many times. */
static bool told_elsewhere(struct state *t, const struct meaning *x, uint32_t vars,
			   const struct form *f)
{
	for (uint32_t i = 0; i < vars; i++) {
		const struct value *own = walk_locate(t, x[i].location);

		if (x[i].id == f->v[0])
			return !certify_numeric(own) || own->f.k[0] == f->k[0];
	}
	return false;
}

/* Values from before the node, and multiples of its variables, and what a loop around counts by or
 * a size that is passed: nothing else keeps what is known of both. */
static bool relate_kept(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			struct meaning *x, uint32_t vars)
{
	struct state *t = &k->w->t.s;
	bool changed = false;

	for (uint32_t v = 0; v < t->vars; v++)
		for (unsigned j = 0; j < 16u + t->slots && counted_at(t, at, v); j++) {
			uint64_t own = j < 16 ? j : certify_location_of(&t->slot[j - 16]);
			const struct value *a = walk_locate(t, own);

			if (certify_numeric(a) && !told_elsewhere(t, x, vars, &a->f))
				changed |=
					relate(k, at, states, n, x, 0, own, counted_at(t, at, v));
		}
	return changed;
}

/* Where a number or pointer stands that is this variable, beside a constant, and no other. Sizes
 * that are passed are related to all others anyway. */
static uint64_t stands_at(struct state *t, uint32_t id)
{
	const struct var *var = var_find(t, id);

	if (var && var->pin >= PIN_SIZES)
		return UINT64_MAX;
	for (unsigned j = 0; j < 16u + t->slots; j++) {
		uint64_t location = j < 16 ? j : certify_location_of(&t->slot[j - 16]);
		const struct value *v = walk_locate(t, location);

		if (certify_numeric(v) && v->f.v[0] == id && !v->f.v[1] && v->f.k[0] == 1)
			return location;
	}
	return UINT64_MAX;
}

static void keep(struct place *p, uint64_t a, uint64_t b)
{
	for (uint32_t q = 0; q < p->fact_count; q++)
		if (p->facts[q].a == a && p->facts[q].b == b)
			p->facts[q].gain += (wide)1 << 42;
}

/* What was known of two values from before, since a list drops all facts. No edge back makes such a
 * fact weaker, so it comes before those that are guessed. */
static bool relate_facts(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			 struct meaning *x)
{
	struct state *t = &k->w->t.s;
	bool changed = false;

	for (uint32_t i = 0; i < states[0]->facts; i++) {
		const struct form *f = &states[0]->fact[i].f;
		uint64_t a = f->v[1] ? stands_at(t, f->v[0]) : UINT64_MAX;
		uint64_t b = f->v[1] ? stands_at(t, f->v[1]) : UINT64_MAX;

		if (a != UINT64_MAX && b != UINT64_MAX && relate(k, at, states, n, x, 0, a, b)) {
			changed = true;
			keep(&k->places[at], a, b);
		}
	}
	return changed;
}

/* Numbers that are forms of a pointer's variable, and pointers that are forms of a number's: with
 * what they can be compared with their variable's own location cannot. */
static bool relate_forms(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			 struct meaning *x, uint32_t vars)
{
	const struct place *p = &k->places[at];
	struct state *t = &k->w->t.s;
	bool changed = false;

	for (uint32_t i = 0; i < p->rep_count; i++) {
		const struct rep *r = &p->reps[i];
		const struct value *own = walk_locate(t, r->location),
				   *base = r->kind == REP_FORM && r->k ? walk_locate(t, r->base)
								       : NULL;

		if (!base || !own || own->kind == base->kind)
			continue;
		for (unsigned j = 0; j < 16u + t->slots; j++)
			changed |= relate(k, at, states, n, x, vars, r->location,
					  j < 16 ? j : certify_location_of(&t->slot[j - 16]));
	}
	return changed;
}

/*
 * Two values of which one stays ahead of the other: what their difference is at the entries and at
 * the edges back. Also of a value and of what a loop around counts by.
 */
bool certify_relate(struct certify *k, uint32_t at, struct state **states, uint32_t n,
		    struct meaning *x, uint32_t vars)
{
	struct state *t = &k->w->t.s;
	bool changed = false;

	certify_assign(&k->w->m.s, t);
	k->w->m.defs = 0;
	changed |= relate_facts(k, at, states, n, x);
	for (uint32_t i = 0; i < vars; i++)
		for (unsigned j = 0; j < 16u + t->slots; j++)
			changed |= relate(k, at, states, n, x, i, x[i].location,
					  j < 16 ? j : certify_location_of(&t->slot[j - 16]));
	if (k->c->last)
		changed |= relate_forms(k, at, states, n, x, vars);
	for (uint32_t i = 0; i < vars; i++)
		for (uint32_t v = 0; v < t->vars; v++)
			if (counted_at(t, at, v))
				changed |= relate(k, at, states, n, x, i, x[i].location,
						  counted_at(t, at, v));
	return relate_kept(k, at, states, n, x, vars) || changed;
}

void certify_find_sum(const struct place *p, struct rep *r, struct state **states, uint32_t n)
{
	const struct state *s = states[0];

	for (uint32_t i = 0; i < p->rep_count * s->vars && !r->no_form && r->kind == REP_NUMBER;
	     i++) {
		const struct rep *base = &p->reps[i / s->vars];
		const struct var *size = &s->var[i % s->vars];
		struct form minus = { .k[0] = 1, .v[0] = size->id };
		bool sum = size->pin >= PIN_SIZES && base != r && base->kind == REP_NUMBER &&
			   base->mult == 1 && base->bits == 64 && r->bits == 64;
		int64_t apart = 0;

		for (uint32_t j = 0; sum && j < n; j++) {
			const struct value *a = walk_locate(states[j], r->location);
			const struct value *b = walk_locate(states[j], base->location);
			struct form d = a->f;

			sum = certify_numeric(b) && a->bits == 64 && b->bits == 64 &&
			      form_add(&d, &b->f, 1) && form_add(&d, &minus, -1) && !d.v[0] &&
			      (!j || d.c == apart);
			apart = d.c;
		}
		if (!sum)
			continue;
		r->kind = REP_FORM;
		r->base = base->location;
		r->k = -1;
		r->c = apart - base->off;
		r->size = 1 + size->pin - PIN_SIZES;
	}
}
