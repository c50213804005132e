/* SPDX-License-Identifier: MIT */
/* What a join may say of what its states have. */
#include "certify_parts.h"

/* ---- joins ---- */

uint64_t certify_location_of(const struct slot *slot)
{
	return LOCATION_STACK + 4 * (uint64_t)(-1 - slot->at) +
	       (slot->size == 1   ? 0
		: slot->size == 2 ? 1
		: slot->size == 4 ? 2
				  : 3);
}

unsigned certify_slots(const struct state *s)
{
	unsigned n = s->slots;

	while (n && s->slot[n - 1].at >= 0)
		n--;
	return n;
}

bool certify_numeric(const struct value *v)
{
	return v && (v->kind == KIND_NUMBER || v->kind == KIND_POINTER);
}

static bool identical(const struct value *a, const struct value *b)
{
	if (!a || !b || a->kind != b->kind || a->tag != b->tag)
		return false;
	return !certify_numeric(a) ? a->kind != KIND_RETURN || a->f.c == b->f.c
				   : form_equal(&a->f, &b->f) && a->bits == b->bits;
}

/* The range of what is at a location in a state, read as `bits`. */
static struct range reading(struct certify *k, const struct state *s, const struct value *v,
			    unsigned bits, bool sign)
{
	struct state *save = certify_enter(k, s);
	struct form f;
	wide shift;
	struct range r;
	bool exact;

	r = value_read(&k->w->m, v, bits, sign, &f, &shift, &exact);
	certify_leave(k, save);
	return r;
}

static struct range var_union(struct state *a, struct state *b, uint32_t id, bool *differs)
{
	struct var *va = var_find(a, id), *vb = var_find(b, id);
	struct range ra, rb;

	*differs = false;
	if (!va || !vb)
		return (struct range){ 0, 0 };
	ra = var_range(va);
	rb = var_range(vb);
	*differs = rb.lo < ra.lo || rb.hi > ra.hi;
	return (struct range){ ra.lo < rb.lo ? ra.lo : rb.lo, ra.hi > rb.hi ? ra.hi : rb.hi };
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/* Whether all that the states have there are multiples of one number, a constant apart. */
static void find_multiple(struct certify *k, struct rep *r, struct state **states, uint32_t n)
{
	uint64_t g = 0;
	int64_t first = 0, off;

	for (uint32_t i = 0; i < n; i++) {
		struct state *save = certify_enter(k, states[i]);
		struct form f;
		bool ok = value_form(&k->w->m, walk_locate(states[i], r->location), 64, r->lo < 0,
				     &f);

		certify_leave(k, save);
		if (!ok)
			return;
		if (!i)
			first = f.c;
		g = gcd(g, (uint64_t)llabs(f.k[0]));
		g = gcd(g, (uint64_t)llabs(f.k[1]));
		g = gcd(g, (uint64_t)llabs(f.c - first));
	}
	if (g < 2 || g > INT32_MAX)
		return;
	off = first % (int64_t)g;
	if (off < 0)
		off += (int64_t)g;
	r->mult = (int64_t)g;
	r->off = off;
	r->lo = (r->lo - off) / (wide)g;
	r->hi = (r->hi - off) / (wide)g;
}

/* Whether all states have a word of so many bits there, of which some is no integer's form. What is
 * a constant apart from it can be said of words only. */
static bool narrow_words(struct certify *k, const struct rep *r, struct state **states, uint32_t n)
{
	unsigned bits = walk_locate(states[0], r->location)->bits;
	bool same = bits < 64, exact = true;

	for (uint32_t i = 0; same && i < n; i++) {
		const struct value *v = walk_locate(states[i], r->location);
		struct state *save = certify_enter(k, states[i]);
		struct form f;

		same = v->bits == bits;
		exact &= value_form(&k->w->m, v, bits, false, &f);
		certify_leave(k, save);
	}
	return same && !exact;
}

void certify_make_number(struct certify *k, struct rep *r, struct state **states, uint32_t n)
{
	unsigned bits = 64;
	bool pointer = false, narrow = true;
	struct range u = { 0, 0 }, s = { 0, 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct value *v = walk_locate(states[i], r->location);

		if (!certify_numeric(v)) {
			r->kind = REP_FORGET;
			return;
		}
		pointer |= v->kind == KIND_POINTER;
		narrow &= v->bits <= 32 || k->unfold;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct value *v = walk_locate(states[i], r->location);
		const struct value *first = walk_locate(states[0], r->location);
		struct range x = reading(k, states[i], v, 64, false);

		if (v->kind != first->kind || v->tag != first->tag) {
			r->kind = REP_FORGET;
			return;
		}
		if (!i || x.lo < u.lo)
			u.lo = x.lo;
		if (!i || x.hi > u.hi)
			u.hi = x.hi;
	}
	if (u.hi > INT64_MAX || (u.hi > INT32_MAX && narrow)) {
		unsigned b = u.hi > INT64_MAX && !(narrow && u.hi <= UINT32_MAX) ? 64 : 32;
		bool first = true;

		/* a number that is meant as negative */
		for (uint32_t i = 0; i < n; i++) {
			struct range x =
				reading(k, states[i], walk_locate(states[i], r->location), b, true);

			if (first || x.lo < s.lo)
				s.lo = x.lo;
			if (first || x.hi > s.hi)
				s.hi = x.hi;
			first = false;
		}
		/* any word had better be read as signed where that is hoped for */
		if (s.hi - s.lo < u.hi - u.lo || pointer ||
		    (b == 32 && k->unfold && k->effort == EFFORT_HOPEFUL)) {
			u = s;
			bits = b;
		}
	}
	r->kind = REP_NUMBER;
	r->size = 0;
	r->also = false;
	if (bits == 64 && u.lo >= 0 && narrow_words(k, r, states, n))
		bits = walk_locate(states[0], r->location)->bits;
	r->bits = (uint8_t)bits;
	r->lo = u.lo;
	r->hi = u.hi;
	r->mult = 1;
	r->off = 0;
	if (bits == 64 && r->lo != r->hi && !r->no_mult)
		find_multiple(k, r, states, n);
	if (r->lo == r->hi) {
		/* the same constant in other words */
		r->kind = REP_FORM;
		r->c = (int64_t)r->lo;
		r->k = 0;
		r->bits = 64;
	}
}

/* A register that is not read any more, and whose value is not that at entry. */
static bool is_dead(const struct certify *k, const struct place *p, unsigned reg,
		    const struct value *v)
{
	return k->c->live && !p->skip && !(k->c->live[p->node] >> reg & 1) && certify_numeric(v) &&
	       reg != FAY_RSP && !machine_unchanged(&k->w->m, v, reg);
}

/* What some state has fewer of: bytes that count as written, and flags. */
static void find_unwritten(struct place *p, struct state **states, uint32_t n)
{
	const struct state *first = states[0];

	p->undefined = 0;
	free(p->unwritten);
	p->unwritten = NULL;
	for (unsigned i = 0; i < 16; i++)
		p->vector[i] = UINT32_MAX;
	for (uint32_t i = 1; i < n; i++) {
		const struct state *s = states[i];

		p->undefined |= s->flags.undefined & ~first->flags.undefined;
		for (unsigned v = 0; v < 16; v++)
			if (first->vector[v] & ~s->vector[v])
				p->vector[v] &= s->vector[v];
		for (int32_t b = 0; b < first->depth; b++)
			if ((first->written[b / 8] & ~s->written[b / 8]) >> b % 8 & 1)
				certify_mark_unwritten(p, b);
	}
}

/* All states have the same value, of variables that range wider in some. Its range is enough if it
 * has one variable. False: it is not. */
static bool find_range(struct place *p, uint64_t location, struct state **states, uint32_t n)
{
	const struct value *v = walk_locate(states[0], location);
	struct range all = { 0, 0 };
	bool wider = false;
	struct rep *r;

	for (uint32_t i = 1; i < n; i++)
		for (unsigned j = 0; j < 2 && v->f.v[j]; j++) {
			bool differs;
			struct range u = var_union(states[0], states[i], v->f.v[j], &differs);

			if (!differs)
				continue;
			all.lo = !wider || u.lo < all.lo ? u.lo : all.lo;
			all.hi = !wider || u.hi > all.hi ? u.hi : all.hi;
			wider = true;
		}
	if (!wider)
		return true;
	if (v->f.v[1] || (all.lo < 0 && all.hi > INT64_MAX))
		return false;
	r = certify_rep_add(p, location);
	r->kind = REP_RANGE;
	r->lo = all.lo;
	r->hi = all.hi;
	return true;
}

/* Whether facts, which a join drops, say more of a sum of two variables than these. */
static bool bounded_by_facts(struct certify *k, const struct state *s, const struct value *v)
{
	struct state *save;
	struct range known, plain;
	struct form f;

	if (!certify_numeric(v) || !v->f.v[1])
		return false;
	f = v->f;
	if (v->bits < 64)
		form_reduce(&f, v->bits);
	save = certify_enter(k, s);
	known = form_range(&k->w->m, &f);
	k->w->m.s.facts = 0;
	plain = form_range(&k->w->m, &f);
	certify_leave(k, save);
	return known.lo > plain.lo || known.hi < plain.hi;
}

static void find_location(struct certify *k, struct place *p, uint64_t location,
			  struct state **states, uint32_t n)
{
	const struct value *v = walk_locate(states[0], location);
	bool same = true;
	struct rep *r;

	if (v->kind == KIND_NOTHING && v->tag == NO_TAG)
		return;
	if (location < 16 && is_dead(k, p, (unsigned)location, v)) {
		certify_rep_add(p, location)->kind = REP_FORGET;
		return;
	}
	for (uint32_t i = 1; i < n; i++)
		same &= identical(v, walk_locate(states[i], location));
	if (same && !certify_numeric(v))
		return;
	for (uint32_t i = 1; i < n && certify_numeric(v); i++) {
		const struct value *other = walk_locate(states[i], location);

		if (other && other->kind == v->kind && v->init & ~other->init)
			certify_rep_add(p, location)->bytes &= other->init;
	}
	same &= location >= 16 || !(p->fresh >> location & 1);
	same &= !certify_numeric(v) || !v->f.v[1] || !certify_part_heads(k, p);
	if (same && !bounded_by_facts(k, states[0], v) && find_range(p, location, states, n))
		return;
	r = certify_rep_add(p, location);
	certify_make_number(k, r, states, n);
	if (r->kind == REP_NUMBER)
		certify_find_tied(k, p, r, states, n);
}

void certify_find_list(struct certify *k, struct place *p, struct state **states, uint32_t n)
{
	const struct state *first = states[0];

	p->rep_count = p->fact_count = p->fill_count = 0;
	find_unwritten(p, states, n);
	for (unsigned at = 0; at < 16u + certify_slots(first); at++)
		find_location(k, p, at < 16 ? at : certify_location_of(&first->slot[at - 16]),
			      states, n);
}
