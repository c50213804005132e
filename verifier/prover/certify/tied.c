/* SPDX-License-Identifier: MIT */
/* Values that in all states are one form of others: of one, of a size and one, of two. */
#include "certify_parts.h"

/* A constant apart from another. */
static void find_apart(const struct place *p, struct rep *r, struct state **states, uint32_t n)
{
	for (uint32_t i = 0; i < p->rep_count && !r->no_form; i++) {
		const struct rep *base = &p->reps[i];
		bool tied = base != r && base->kind == REP_NUMBER && base->bits == r->bits;
		int64_t apart = 0;

		for (uint32_t j = 0; tied && j < n; j++) {
			const struct value *a = walk_locate(states[j], base->location);
			const struct value *b = walk_locate(states[j], r->location);
			struct form d = b->f;

			tied = certify_numeric(a) && a->bits == b->bits &&
			       form_add(&d, &a->f, -1) && !d.v[0] && (!j || d.c == apart);
			apart = d.c;
		}
		if (!tied)
			continue;
		r->kind = REP_FORM;
		r->base = base->location;
		r->k = base->mult;
		r->c = base->off + apart;
		return;
	}
}

/* With another it is the size of a region. */
static void find_rest(const struct place *p, struct rep *r, struct state **states, uint32_t n)
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

/* What the list's variable for the location is in a state, as a form; false: none. */
static bool form_in(struct certify *k, struct state *s, const struct rep *r, struct form *f)
{
	const struct value *v = walk_locate(s, r->location);
	struct state *save;
	bool ok;

	if (!certify_numeric(v))
		return false;
	save = certify_enter(k, s);
	ok = value_form(&k->w->m, v, r->bits, r->lo < 0, f);
	certify_leave(k, save);
	return ok;
}

/* How often the number has the variable: as often as is asked, or a part of that. 0: not. */
static int64_t times(const struct form *f, uint32_t id, int64_t often)
{
	return f->v[0] == id && !f->v[1] && !(often % f->k[0]) ? often / f->k[0] : 0;
}

/* What is left of r in all states without so many times the two is one constant, *apart. */
static bool apart_from(struct certify *k, const struct rep *r, const struct rep *a,
		       const struct rep *b, const int64_t times[2], struct state **states,
		       uint32_t n, int64_t *apart)
{
	for (uint32_t j = 0; j < n; j++) {
		const struct value *v = walk_locate(states[j], r->location);
		struct form d, fa, fb;

		if (!certify_numeric(v) || v->bits != 64 || !form_in(k, states[j], a, &fa) ||
		    !form_in(k, states[j], b, &fb))
			return false;
		d = v->f;
		if (!form_add(&d, &fa, -times[0]) || !form_add(&d, &fb, -times[1]) || d.v[0] ||
		    (j && d.c != *apart))
			return false;
		*apart = d.c;
	}
	return true;
}

/* The sum of multiples of two others and a constant: of those that it is in state `s`. */
static void find_two(struct certify *k, const struct place *p, struct rep *r, struct state *s,
		     struct state **states, uint32_t n)
{
	const struct form f = walk_locate(s, r->location)->f;

	for (uint32_t i = 0; i < p->rep_count * p->rep_count; i++) {
		const struct rep *a = &p->reps[i / p->rep_count], *b = &p->reps[i % p->rep_count];
		struct form fa, fb;
		int64_t often[2], apart = 0;

		if (a == r || b == r || a == b || a->kind != REP_NUMBER || b->kind != REP_NUMBER ||
		    !form_in(k, s, a, &fa) || !form_in(k, s, b, &fb))
			continue;
		often[0] = times(&fa, f.v[0], f.k[0]);
		often[1] = times(&fb, f.v[1], f.k[1]);
		if (!often[0] || !often[1] || !apart_from(k, r, a, b, often, states, n, &apart))
			continue;
		r->kind = REP_FORM;
		r->base = a->location;
		r->k = often[0] * a->mult;
		r->base2 = b->location;
		r->k2 = often[1] * b->mult;
		r->also = true;
		r->c = apart + often[0] * a->off + often[1] * b->off;
		return;
	}
}

void certify_find_tied(struct certify *k, const struct place *p, struct rep *r,
		       struct state **states, uint32_t n)
{
	r->also = false;
	find_rest(p, r, states, n);
	if (r->kind == REP_NUMBER)
		find_apart(p, r, states, n);
	for (uint32_t i = 0; i < n && k->c->sums && r->kind == REP_NUMBER && !r->no_sum &&
			     !certify_part_heads(k, p);
	     i++) {
		const struct value *v = walk_locate(states[i], r->location);

		if (certify_numeric(v) && v->bits == 64 && v->f.v[1])
			find_two(k, p, r, states[i], states, n);
	}
}
