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
	same &= !certify_numeric(v) || !v->f.v[1] || !certify_unfold_heads(k, p);
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

/* ---- where ranges end ---- */

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
