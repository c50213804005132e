/* SPDX-License-Identifier: MIT */
/* Values of which one stays ahead of the other: facts of a list. */
#include "certify_parts.h"
#include "verifier/checker/machine/form.h"

#define MULTIPLE_MOST 65536

/* Is the form of a value, as it stands, its 64 bits, or what they are as a narrower signed word? */
static bool whole(struct certify *k, const struct value *v)
{
	struct form f;

	return v->bits == 64 || (value_form(&k->w->m, v, v->bits, false, &f) && f.c == v->f.c) ||
	       (k->c->sums && value_form(&k->w->m, v, v->bits, true, &f) && f.c == v->f.c);
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
		if (p->facts[q].ka + p->facts[q].kb)
			continue;
		else if ((p->facts[q].a == own && p->facts[q].b == other) ||
			 (same_as(t, at, p->facts[q].a, a) && same_as(t, at, p->facts[q].b, b)) ||
			 (same_as(t, at, p->facts[q].a, b) && same_as(t, at, p->facts[q].b, a)))
			return false;
	return true;
}

/* The integer that the node's state means by what is at the location, of what the state in w->m has
 * there. */
static bool meant(struct certify *k, uint32_t at, uint64_t location, const struct value *v,
		  bool pointer, struct form *f)
{
	const struct rep *r = certify_rep_of(&k->places[at], location);
	unsigned bits = k->c->sums && r && r->kind == REP_NUMBER ? r->bits : 64;

	if (!certify_numeric(v))
		return false;
	pointer |= v->kind == KIND_POINTER;
	return value_form(&k->w->m, v, bits, pointer, f) ||
	       (k->c->sums && value_form(&k->w->m, v, bits, !pointer, f));
}

bool certify_related(struct certify *k, uint32_t at, const struct relation *f, struct range *r)
{
	struct machine *m = &k->w->m;
	struct value own;
	const struct value *a = walk_locate(&m->s, f->a),
			   *b = walk_number_at(&m->s, at, f->b, &own);
	struct form fa, fb, sum = form_number(0);

	if (!meant(k, at, f->a, a, false, &fa) ||
	    !meant(k, at, f->b, b, a->kind == KIND_POINTER, &fb) || !form_plus(&sum, &fb, f->kb) ||
	    !form_plus(&sum, &fa, f->ka))
		return false;
	*r = form_range(m, &sum);
	return true;
}

/* The range of what the relation bounds, of all states that the head is entered with, and of those
 * at the edges back. */
static bool related_in_all(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			   const struct relation *f, struct range *all)
{
	const struct waiting *back = k->effort != EFFORT_HOPEFUL ? k->places[at].back : NULL;
	bool ok = n > 0;

	for (uint32_t i = 0; ok && (i < n || back); i++) {
		struct range r;

		certify_take(k, at, i < n ? states[i] : back->s);
		if (i >= n)
			back = back->next;
		ok = certify_related(k, at, f, &r);
		all->lo = !i || r.lo < all->lo ? r.lo : all->lo;
		all->hi = !i || r.hi > all->hi ? r.hi : all->hi;
	}
	certify_assign(&k->w->m.s, &k->w->t.s);
	k->w->m.defs = 0;
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

/* A fact of the list, if in all states the relation says more than the ranges of both. */
static bool add_related(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			struct relation f)
{
	const wide most = (wide)1 << 62;
	struct state *t = &k->w->t.s;
	struct range all = { 0, 0 }, free;
	struct value counted;
	const struct value *a = walk_locate(t, f.a), *b = walk_number_at(t, at, f.b, &counted);
	struct form sum = form_number(0);

	if (!related_in_all(k, at, states, n, &f, &all) || !form_plus(&sum, &a->f, f.ka) ||
	    !form_plus(&sum, &b->f, f.kb))
		return false;
	free = form_range(&k->w->m, &sum);
	if (all.lo <= free.lo && all.hi >= free.hi)
		return false;
	/* only which is ahead, and by how little: the rest follows from ranges */
	f.lo = all.lo < -most ? -most : all.lo;
	f.hi = all.hi > most ? most : all.hi;
	f.gain += gain(f.b, &all, &free);
	return add_fact(&k->places[at], &f);
}

/* The same of how far what is at `other` is ahead of what is at `own`, variable i's value or one
 * from before. */
static bool relate(struct certify *k, uint32_t at, struct state **states, uint32_t n,
		   struct meaning *x, uint32_t i, uint64_t own, uint64_t other)
{
	return comparable(k, at, x, i, own, other) &&
	       add_related(k, at, states, n,
			   (struct relation){ .a = own, .b = other, .ka = -1, .kb = 1 });
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

/* Where a number or pointer stands that is a multiple of this variable of the state, beside a
 * constant, and no other, and the node's state `t` has one; *times: of which, the least. Sizes that
 * are passed are related to all others anyway. */
static uint64_t stands_at(struct state *s, struct state *t, uint32_t id, int64_t *times)
{
	const struct var *var = var_find(s, id);
	uint64_t at = UINT64_MAX;

	if (var && var->pin >= PIN_SIZES)
		return at;
	for (unsigned j = 0; j < 16u + t->slots; j++) {
		uint64_t location = j < 16 ? j : certify_location_of(&t->slot[j - 16]);
		const struct value *v = walk_locate(s, location), *w = walk_locate(t, location);

		if (!certify_numeric(v) || v->f.v[0] != id || v->f.v[1] || v->f.k[0] < 1 ||
		    v->f.k[0] > MULTIPLE_MOST || !certify_numeric(w) || !w->f.v[0] || w->f.v[1] ||
		    (at != UINT64_MAX && v->f.k[0] >= *times))
			continue;
		at = location;
		*times = v->f.k[0];
	}
	return at;
}

/* The fact of a state as one of what stands in all, in place of its variables. */
static bool fact_of(struct state *s, struct state *t, const struct fact *fact, struct relation *f)
{
	int64_t ta, tb;

	if (llabs(fact->f.k[0]) > MULTIPLE_MOST || llabs(fact->f.k[1]) > MULTIPLE_MOST)
		return false;
	*f = (struct relation){ .a = stands_at(s, t, fact->f.v[0], &ta),
				.b = stands_at(s, t, fact->f.v[1], &tb) };
	if (f->a == UINT64_MAX || f->b == UINT64_MAX)
		return false;
	f->ka = fact->f.k[0] * tb; /* ta * tb times the fact */
	f->kb = fact->f.k[1] * ta;
	ta = (int64_t)common_factor((uint64_t)llabs(f->ka), (uint64_t)llabs(f->kb));
	f->ka /= ta;
	f->kb /= ta;
	return true;
}

/* Whether the list has the relation, or the same with its sign changed, the other way around. */
static bool has_fact(const struct place *p, const struct relation *f)
{
	for (uint32_t q = 0; q < p->fact_count; q++) {
		const struct relation *g = &p->facts[q];
		bool same = g->a == f->a && g->b == f->b, turned = g->a == f->b && g->b == f->a;
		int64_t ka = turned ? g->kb : g->ka, kb = turned ? g->ka : g->kb;

		if ((same || turned) &&
		    ((ka == f->ka && kb == f->kb) || (ka == -f->ka && kb == -f->kb)))
			return true;
	}
	return false;
}

/* Whether both are of one variable of the node's state each, not the same. */
static bool numbers_apart(struct certify *k, const struct relation *f)
{
	const struct value *a = walk_locate(&k->w->t.s, f->a), *b = walk_locate(&k->w->t.s, f->b);

	return certify_numeric(a) && certify_numeric(b) && a->f.v[0] && b->f.v[0] && !a->f.v[1] &&
	       !b->f.v[1] && a->f.v[0] != b->f.v[0] && whole(k, a) && whole(k, b);
}

/* Whether what is at both locations is what it was in the state: no edge back makes a fact of them
 * weaker. */
static bool from_before(struct certify *k, const struct relation *f, struct state *s)
{
	struct state *t = &k->w->t.s;

	return walk_locate(t, f->a)->f.v[0] == walk_locate(s, f->a)->f.v[0] &&
	       walk_locate(t, f->b)->f.v[0] == walk_locate(s, f->b)->f.v[0];
}

/* What was known of two values, since a list drops all facts. Such a fact comes before those that
 * are guessed: of values from before, or of a sum. */
static bool relate_facts(struct certify *k, uint32_t at, struct state **states, uint32_t n)
{
	const struct place *p = &k->places[at];
	bool changed = false;

	for (uint32_t i = 0; i < states[0]->facts; i++) {
		struct relation f;

		if (!fact_of(states[0], &k->w->t.s, &states[0]->fact[i], &f) || has_fact(p, &f) ||
		    !numbers_apart(k, &f))
			continue;
		if (!k->c->sums && (f.ka + f.kb || !from_before(k, &f, states[0])))
			continue;
		f.gain = from_before(k, &f, states[0]) ? (wide)1 << 42
			 : f.ka + f.kb                 ? (wide)1 << 41
						       : 0;
		changed |= add_related(k, at, states, n, f);
	}
	return changed;
}

/* What a quotient is of, which is known up to the end of the node only. */
static bool relate_quotients(struct certify *k, uint32_t at, struct state **states, uint32_t n)
{
	const struct waiting *in = k->places[at].in;
	bool changed = false;

	for (uint32_t i = 0; n == 1 && i < in->defs; i++) {
		const struct def *d = &in->def[i];
		struct fact fact = { .f.k[0] = -1, .f.v[0] = d->f.v[0] };
		struct form q = { .v[0] = d->id };
		struct relation f;
		wide by;

		if (d->kind != DEF_FLOOR || d->shift > 100 || d->f.k[0] < 1 || d->f.v[1])
			continue;
		by = (wide)d->factor * d->f.k[0]; /* over 2^shift: what one is of the other */
		if (by < 2 || POWER(d->shift) / by > MULTIPLE_MOST)
			continue;
		q.k[0] = (int64_t)((POWER(d->shift) + by / 2) / by);
		if (!form_plus(&fact.f, &q, 1) || !fact.f.v[1] ||
		    !fact_of(states[0], &k->w->t.s, &fact, &f) || has_fact(&k->places[at], &f) ||
		    !numbers_apart(k, &f))
			continue;
		f.gain = (wide)1 << 42;
		changed |= add_related(k, at, states, n, f);
	}
	return changed;
}

/* By how much what is at the variable's location moves along each edge back; 0: that is not known,
 * or it stays. */
static int64_t step_of(struct certify *k, uint32_t at, struct meaning *x)
{
	struct var *v = var_find(&k->w->t.s, x->id);
	int64_t step = 0;

	for (const struct waiting *b = k->places[at].back; v && b; b = b->next) {
		struct form was = { .k[0] = 1, .v[0] = x->id }, moved;

		certify_assign(&k->w->m.s, b->s);
		k->w->m.defs = 0;
		walk_meaning(k->w, x, v);
		moved = x->whole;
		if (!x->exact || !form_plus(&moved, &was, -1) || moved.v[0] || !moved.c ||
		    llabs(moved.c) > MULTIPLE_MOST || x->k > MULTIPLE_MOST ||
		    (step && step != moved.c * x->k))
			return 0;
		step = moved.c * x->k;
	}
	return step;
}

/* Two that move steadily: what so many times the one and so many times the other come to stays. */
static bool relate_steps(struct certify *k, uint32_t at, struct state **states, uint32_t n,
			 struct meaning *x, uint32_t vars)
{
	int64_t step[JOIN_MOST];
	bool changed = false;

	for (uint32_t i = 0; i < vars && k->places[at].back; i++)
		step[i] = step_of(k, at, &x[i]);
	certify_assign(&k->w->m.s, &k->w->t.s);
	for (uint32_t i = 0; i < vars * vars && k->places[at].back; i++) {
		uint32_t a = i / vars, b = i % vars;
		struct relation f = { .a = x[a].location, .b = x[b].location };
		int64_t g;

		if (a >= b || !step[a] || !step[b] || step[a] == step[b])
			continue;
		g = (int64_t)common_factor((uint64_t)llabs(step[a]), (uint64_t)llabs(step[b]));
		f.ka = step[b] / g;
		f.kb = -step[a] / g;
		if (numbers_apart(k, &f) && !has_fact(&k->places[at], &f))
			changed |= add_related(k, at, states, n, f);
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
	if (k->c->sums)
		changed |= relate_quotients(k, at, states, n);
	changed |= relate_facts(k, at, states, n);
	for (uint32_t i = 0; i < vars; i++)
		for (unsigned j = 0; j < 16u + t->slots; j++)
			changed |= relate(k, at, states, n, x, i, x[i].location,
					  j < 16 ? j : certify_location_of(&t->slot[j - 16]));
	if (k->c->sums)
		changed |= relate_steps(k, at, states, n, x, vars);
	if (k->c->last)
		changed |= relate_forms(k, at, states, n, x, vars);
	for (uint32_t i = 0; i < vars; i++)
		for (uint32_t v = 0; v < t->vars; v++)
			if (counted_at(t, at, v))
				changed |= relate(k, at, states, n, x, i, x[i].location,
						  counted_at(t, at, v));
	return relate_kept(k, at, states, n, x, vars) || changed;
}
