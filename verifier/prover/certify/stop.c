/* SPDX-License-Identifier: MIT */
/* Where the ranges of a list end. */
#include "certify_parts.h"

#define CODE_STOPS 12u /* so often a range ends at a number of the code */
#define LOOP_STOPS 20u /* and then, up to so often, at what the loop around compares with */
#define OWN_STOPS 24u  /* and it compares the very register with */
#define OWN_FIRST 4u   /* with these it begins where all is tried */

static void nearer(const struct rep *r, wide n, wide at, bool up, wide *best)
{
	n -= r->off;
	n = n / r->mult - (n % r->mult < 0 && !up) + (n % r->mult > 0 && up);
	if (up ? n >= at && n < *best : n <= at && n > *best)
		*best = n;
}

/* At numbers that the loop around the place compares with, and next to them. */
static void nearer_compared(const struct certify *k, const struct place *p, const struct rep *r,
			    wide at, bool up, wide *best)
{
	const struct fay_graph *g = k->c->graph;
	uint32_t head = fay_graph_loop(g, p->node);

	for (uint32_t i = 0; head != FAY_NONE && i < k->compared_count; i++)
		for (int d = -1; d <= 1 && fay_graph_in_loop(g, k->compared[i].node, head); d++) {
			nearer(r, k->compared[i].n + d, at, up, best);
			if (r->mult == 1)
				continue;
			nearer(r, (k->compared[i].n + d) * r->mult + r->off, at, up, best);
			nearer(r, k->compared[i].n + d * r->mult, at, up, best);
		}
}

/* Where a number that is a form of this one is -1, 0 or 1. */
static void nearer_forms(const struct place *p, const struct rep *r, wide at, bool up, wide *best)
{
	for (uint32_t i = 0; i < p->rep_count; i++) {
		const struct rep *q = &p->reps[i];

		for (int d = -1; d <= 1 && q->kind == REP_FORM && q->base == r->location; d++)
			if (q->k && !q->size && !q->also && ((wide)d - q->c) % q->k == 0)
				nearer(r, ((wide)d - q->c) / q->k * r->mult + r->off, at, up, best);
	}
}

/* Near where what is at `location` is n, if that is the number or a form of it. */
static void nearer_at(const struct place *p, const struct rep *r, uint64_t location, wide n,
		      wide at, bool up, wide *best)
{
	const struct rep *q = certify_rep_of(p, location);

	for (int d = -1; q && d <= 1; d++) {
		if (q == r)
			nearer(r, n + d * r->mult, at, up, best);
		else if (q->kind == REP_FORM && q->k && !q->size && !q->also &&
			 q->base == r->location)
			nearer(r, ((n - q->c) / q->k + d) * r->mult + r->off, at, up, best);
	}
}

/* The end of x, where k * x and so many times another in the range are bounded by the fact. */
static wide related_end(const struct relation *f, int64_t k, int64_t times, struct range other,
			bool up)
{
	wide lo = times * other.lo, hi = times * other.hi;

	return ((up == (k > 0) ? f->hi - (lo < hi ? lo : hi) : f->lo - (lo < hi ? hi : lo))) / k;
}

/* Where the loop around compares the register of the number with one, or that of a form of it. */
static void nearer_own(const struct certify *k, const struct place *p, const struct rep *r, wide at,
		       bool up, wide *best)
{
	uint32_t head = fay_graph_loop(k->c->graph, p->node);

	for (uint32_t i = 0; head != FAY_NONE && i < k->compared_count; i++)
		if (fay_graph_in_loop(k->c->graph, k->compared[i].node, head))
			nearer_at(p, r, k->compared[i].location, k->compared[i].n, at, up, best);
}

/* The range ends where the fact, of the number and of what is at `other`, ends it. */
static bool tighten(struct state *t, struct machine *m, struct rep *r, const struct relation *f,
		    int64_t k, int64_t times, uint64_t other)
{
	const struct value *v = other < LOCATION_SIZES ? walk_locate(t, other) : NULL;
	wide was = r->hi - r->lo, lo, hi;
	struct range range;

	if (!certify_numeric(v))
		return false;
	range = form_range(m, &v->f); /* facts are of integers, not of words */
	lo = (related_end(f, k, times, range, false) - r->off) / r->mult;
	hi = (related_end(f, k, times, range, true) - r->off) / r->mult;
	if (hi < r->hi && hi > r->lo)
		r->hi = hi;
	if (lo > r->lo && lo < r->hi)
		r->lo = lo;
	return r->hi - r->lo < was;
}

bool certify_tighten(struct certify *k, struct place *p)
{
	bool tighter = false;

	for (uint32_t i = 0; i < p->rep_count; i++)
		for (uint32_t j = 0; j < p->fact_count && p->reps[i].kind == REP_NUMBER; j++) {
			const struct relation *f = &p->facts[j];
			struct rep *r = &p->reps[i];

			if (f->a == r->location)
				tighter |= tighten(&k->w->t.s, &k->w->t, r, f, f->ka, f->kb, f->b);
			else if (f->b == r->location)
				tighter |= tighten(&k->w->t.s, &k->w->t, r, f, f->kb, f->ka, f->a);
		}
	return tighter;
}

/* Where a fact, and the range of the other value that it names, end it. */
static void nearer_related(struct certify *k, const struct place *p, const struct rep *r, wide at,
			   bool up, wide *best)
{
	for (uint32_t i = 0; i < p->fact_count; i++) {
		const struct relation *f = &p->facts[i];
		const struct value *a = walk_locate(&k->w->t.s, f->a),
				   *b = f->b < LOCATION_SIZES ? walk_locate(&k->w->t.s, f->b)
							      : NULL;
		struct range ra, rb;

		if (!certify_numeric(a) || !certify_numeric(b))
			continue;
		ra = value_range(&k->w->t, a, 64, a->kind == KIND_POINTER);
		rb = value_range(&k->w->t, b, 64, b->kind == KIND_POINTER);
		nearer_at(p, r, f->a, related_end(f, f->ka, f->kb, rb, up), at, up, best);
		nearer_at(p, r, f->b, related_end(f, f->kb, f->ka, ra, up), at, up, best);
	}
}

/* Near where a form of the number is n, as v is, which is of the same kind. */
static void nearer_in_forms(struct state *t, const struct place *p, const struct rep *r,
			    const struct value *v, wide n, wide at, bool up, wide *best)
{
	for (uint32_t i = 0; r->widened < LOOP_STOPS && i < p->rep_count; i++) {
		const struct value *own = p->reps[i].kind == REP_FORM && p->reps[i].k
						  ? walk_locate(t, p->reps[i].location)
						  : NULL;

		if (own && own != v && own->kind == v->kind && own->tag == v->tag)
			nearer_at(p, r, p->reps[i].location, n, at, up, best);
	}
}

wide certify_stop(struct certify *k, const struct place *p, const struct rep *r, wide at, bool up)
{
	wide best = up ? (wide)UINT64_MAX : INT64_MIN;
	struct state *t = &k->w->t.s;
	const struct value *own = walk_locate(t, r->location);
	uint32_t id = own ? own->f.v[0] : 0;

	if (r->widened >= LOOP_STOPS ? r->widened < OWN_STOPS
				     : k->c->sums && r->widened < OWN_FIRST) {
		wide near = best;

		nearer_own(k, p, r, at, up, &near);
		if (near != best)
			return near;
	}
	/* those of the code for a while, then the ends of words only */
	for (uint32_t i = 0; i < (r->widened < CODE_STOPS ? k->stop_count : COMMON_STOPS); i++) {
		nearer(r, k->stops[i], at, up, &best);
		/* of a multiple also those that a counter beside it may be compared with */
		if (r->mult != 1)
			nearer(r, k->stops[i] * r->mult + r->off, at, up, &best);
	}
	if (r->widened >= CODE_STOPS && r->widened < LOOP_STOPS) {
		nearer_compared(k, p, r, at, up, &best);
		nearer_forms(p, r, at, up, &best);
	}
	if (p->narrowed && r->widened < LOOP_STOPS)
		nearer_related(k, p, r, at, up, &best);
	for (unsigned i = 0; p->plain && i < 16u + t->slots; i++) {
		const struct value *v = i < 16 ? &t->reg[i] : &t->slot[i - 16].v;
		struct range all;

		/* what moves with it would move the end one step each time */
		if (!certify_numeric(v) || (id && (v->f.v[0] == id || v->f.v[1] == id)))
			continue;
		all = value_range(&k->w->t, v, 64, v->kind == KIND_POINTER);
		for (int d = -1; d <= 1; d++) {
			nearer(r, all.lo + d * r->mult, at, up, &best);
			nearer(r, all.hi + d * r->mult, at, up, &best);
		}
		if (k->c->last)
			nearer_in_forms(t, p, r, v, up ? all.hi : all.lo, at, up, &best);
	}
	return best;
}
