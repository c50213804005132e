/* SPDX-License-Identifier: MIT */
/* Putting a list to the proof: the checker says what does not hold, and that is made weaker. */
#include "certify_parts.h"

/* ---- putting a list to the proof ---- */

static void use_list(struct certify *k, uint32_t at)
{
	struct place *p = &k->places[at];
	struct node *node = &k->w->nodes[at];

	certify_write_list(p);
	k->w->certificate = (struct reader){ .bytes = p->list.at, .size = (uint32_t)p->list.size };
	node->list = 0;
	node->measure = (uint16_t)p->measure;
}

/* The node's state from `s`, in w->t. */
bool certify_make(struct certify *k, uint32_t at, struct state *s, struct meaning *x, uint32_t *n)
{
	memcpy(&k->w->m.s, s, sizeof(*s));
	k->w->m.defs = 0;
	use_list(k, at);
	if (walk_make(k->w, at, x, n))
		return true;
	k->c->refusal = k->w->m.refusal.rule ? k->w->m.refusal : k->w->t.refusal;
	return false;
}

static void nearer(const struct rep *r, wide n, wide at, bool up, wide *best)
{
	n -= r->off;
	n = n / r->mult - (n % r->mult < 0 && !up) + (n % r->mult > 0 && up);
	if (up ? n >= at && n < *best : n <= at && n > *best)
		*best = n;
}

/* Where a range may end: at numbers that the code compares with, and next to what the state has
 * elsewhere. */
static wide stop(struct certify *k, const struct rep *r, wide at, bool up, bool state)
{
	wide best = up ? (wide)UINT64_MAX : INT64_MIN;
	struct state *t = &k->w->t.s;

	for (uint32_t i = 0; i < k->stop_count; i++)
		nearer(r, k->stops[i], at, up, &best);
	for (unsigned i = 0; state && i < 16u + t->slots; i++) {
		const struct value *v = i < 16 ? &t->reg[i] : &t->slot[i - 16].v;
		struct range all;

		if (!certify_numeric(v))
			continue;
		all = value_range(&k->w->t, v, 64, v->kind == KIND_POINTER);
		for (int d = -1; d <= 1; d++) {
			nearer(r, all.lo + d * r->mult, at, up, &best);
			nearer(r, all.hi + d * r->mult, at, up, &best);
		}
	}
	return best;
}

void certify_hint_range(struct certify *k, uint32_t at, struct rep *r)
{
	wide lo = r->lo * r->mult + r->off, hi = r->hi * r->mult + r->off, l, h;
	struct fay_hint hint;

	if (k->places[at].plain || !k->c->hint ||
	    !k->c->hint(k->c->context, k->places[at].node, r->location, &hint))
		return;
	if (lo >= 0 && hint.umax != UINT64_MAX) {
		l = hint.umin;
		h = hint.umax;
	} else if (r->bits == 64 && (hint.smin != INT64_MIN || hint.smax != INT64_MAX)) {
		l = hint.smin;
		h = hint.smax;
	} else if (r->bits == 32 && (int32_t)hint.smin == hint.smin &&
		   (int32_t)hint.smax == hint.smax) {
		l = hint.smin;
		h = hint.smax;
	} else {
		return;
	}
	if (l > lo || h < hi || (l < 0 && h > INT64_MAX))
		return;
	/* the least and the greatest multiple between them, or where it may end before */
	while ((l - r->off) % r->mult)
		l++;
	l = (l - r->off) / r->mult;
	h -= r->off;
	h = h / r->mult - (h % r->mult < 0);
	lo = stop(k, r, r->lo, false, false);
	hi = stop(k, r, r->hi, true, false);
	r->lo = l < INT32_MIN && l < lo ? lo : l;
	r->hi = h > INT32_MAX && h > hi ? hi : h;
}

/* A range that was too small. */
static bool widen(struct certify *k, uint32_t at, struct rep *r, struct range seen)
{
	wide lo = seen.lo < r->lo ? seen.lo : r->lo, hi = seen.hi > r->hi ? seen.hi : r->hi;
	bool down = lo<r->lo, up = hi> r->hi;

	if (r->widened > 24)
		return false;
	r->lo = lo;
	r->hi = hi;
	if (!r->widened)
		certify_hint_range(k, at, r);
	else if (up)
		r->hi = stop(k, r, hi, true, k->places[at].plain);
	if (r->widened && down)
		r->lo = stop(k, r, lo, false, k->places[at].plain);
	r->widened++;
	if (r->bits < 64 && r->lo < 0 && r->hi - r->lo >= (wide)1 << r->bits) {
		r->lo = -((wide)1 << (r->bits - 1));
		r->hi = ((wide)1 << (r->bits - 1)) - 1;
	} else if (r->bits < 64 && r->hi >= (wide)1 << r->bits) {
		r->hi = ((wide)1 << r->bits) - 1;
	} else if (r->lo < 0 && r->hi > INT64_MAX) {
		r->lo = 0;
		r->hi = UINT64_MAX;
	}
	return true;
}

/*
 * Whether state `s` is included in the node's (w->t, with n variables). What is not is made weaker:
 * *changed. False: it cannot be.
 */
bool certify_check_one(struct certify *k, uint32_t at, struct state *s, struct state *first,
		       struct meaning *x, uint32_t n, bool *changed)
{
	struct place *p = &k->places[at];
	struct walk *w = k->w;
	struct state *t = &w->t.s;
	bool here = false;

	memcpy(&w->m.s, s, sizeof(*s));
	w->m.defs = 0;
	if (walk_includes(w, x, n))
		return true;
	if (s->depth != t->depth)
		return certify_fail(k, FAY_RULE_STK_POINTER, w->nodes[at].address, "depths differ");
	for (uint32_t i = 0; i < n; i++) {
		struct rep *r = certify_rep_of(p, x[i].location);
		struct var *v = var_find(t, x[i].id);
		struct value *have;
		struct range seen;
		bool exact;

		if (!v || walk_meaning(w, &x[i], v))
			continue;
		here = true;
		have = walk_locate(&w->m.s, x[i].location);
		if (!certify_numeric(have)) {
			r->kind = REP_FORGET;
			continue;
		}
		if (r->mult != 1) {
			struct form f;
			wide g = r->mult;

			if (value_form(&w->m, have, 64, r->lo < 0, &f) && !((f.c - r->off) % g) &&
			    !(f.k[0] % g) && !(f.k[1] % g)) {
				seen = form_range(&w->m, &f);
				seen = (struct range){ (seen.lo - r->off) / g,
						       (seen.hi - r->off) / g };
				if (widen(k, at, r, seen))
					continue;
			}
			struct state *both[2] = { first, s };

			r->no_mult = true;
			r->widened = 0;
			certify_make_number(k, p, r, both, 2);
			if (r->kind == REP_FORM)
				r->kind = REP_FORGET;
			continue;
		}
		seen = value_range(&w->m, have, r->bits, r->lo < 0);
		if (value_range(&w->m, have, 64, false).hi >> r->bits && have->bits > r->bits)
			r->bits = 64;
		(void)exact;
		if (seen.lo >= r->lo && seen.hi <= r->hi) { /* of a word it is another reading */
			seen = (struct range){ 0, (wide)(((unsigned __int128)1 << r->bits) - 1) };
			if (r->lo < 0)
				r->lo = 0;
		}
		if (!widen(k, at, r, seen)) {
			r->bits = 64;
			r->lo = 0;
			r->hi = UINT64_MAX;
		}
	}
	for (unsigned i = 0; i < 16u + t->slots; i++) {
		uint64_t location = i < 16 ? i : certify_location_of(&t->slot[i - 16]);
		struct value *want = walk_locate(t, location);
		struct value *have = walk_locate(&w->m.s, location);
		struct rep *r = certify_rep_of(p, location);

		if (walk_same(w, x, n, location, have, want))
			continue;
		if (here && r && r->kind == REP_FORM)
			continue; /* its base may be at fault */
		here = true;
		if (have && want->kind == KIND_NUMBER && have->kind == KIND_NUMBER &&
		    (have->init & want->init) != want->init) {
			if (!r)
				r = certify_rep_add(p, location);
			r->bytes &= have->init;
			continue;
		}
		if (r && r->kind == REP_NUMBER) {
			if (!certify_numeric(have) || have->kind != want->kind ||
			    have->tag != want->tag)
				r->kind = REP_FORGET;
			continue;
		}
		if (!r)
			r = certify_rep_add(p, location);
		if (!certify_numeric(have) || !certify_numeric(want) || have->kind != want->kind ||
		    have->tag != want->tag) {
			r->kind = REP_FORGET;
		} else {
			struct state *both[2] = { first, s };

			r->no_form |= r->kind == REP_FORM && r->k;
			certify_make_number(k, p, r, both, 2);
			if (r->kind == REP_FORM) {
				r->kind = REP_NUMBER;
				r->bits = 64;
				r->lo = 0;
				r->hi = UINT64_MAX;
			} else if (r->kind == REP_NUMBER) {
				certify_hint_range(k, at, r);
			}
		}
	}
	for (unsigned i = 0; i < t->vars; i++) {
		struct var *have = var_find(&w->m.s, t->var[i].id);
		struct range want = var_range(&t->var[i]), r;

		if (n && t->var[i].id >= x[0].id && t->var[i].id <= x[n - 1].id)
			continue;
		r = have ? var_range(have) : want;
		if (have && r.lo >= want.lo && r.hi <= want.hi)
			continue;
		if (have && t->var[i].pin) {
			uint64_t which = 0;
			struct rep *rep;

			for (unsigned j = 0; j < i; j++)
				which += t->var[j].pin == t->var[i].pin;
			rep = certify_rep_add(p, LOCATION_COUNTS +
							 ((uint64_t)(at + 1 - t->var[i].pin) << 8) +
							 which);

			rep->kind = REP_RANGE;
			rep->lo = r.lo < want.lo ? r.lo : want.lo;
			rep->hi = r.hi > want.hi ? r.hi : want.hi;
			here = true;
			continue;
		}
		/* whoever names it gets a number of its own */
		for (unsigned j = 0; j < 16u + t->slots; j++) {
			uint64_t location = j < 16 ? j : certify_location_of(&t->slot[j - 16]);
			struct value *v = walk_locate(t, location);
			struct state *both[2] = { first, s };
			struct rep *rep;

			if (!certify_numeric(v) ||
			    (v->f.v[0] != t->var[i].id && v->f.v[1] != t->var[i].id))
				continue;
			here = true;
			rep = certify_rep_add(p, location);
			certify_make_number(k, p, rep, both, 2);
		}
	}
	for (uint32_t i = 0; i < p->fact_count && !here; i++) {
		struct relation *f = &p->facts[i];
		struct value *a = walk_locate(&w->m.s, f->a), *b = walk_locate(&w->m.s, f->b);
		bool pointer = a && a->kind == KIND_POINTER;
		struct form fa, fb;
		struct range r;

		if (certify_numeric(a) && certify_numeric(b) &&
		    value_form(&w->m, a, 64, pointer, &fa) &&
		    value_form(&w->m, b, 64, pointer, &fb) && form_add(&fb, &fa, -1)) {
			r = form_range(&w->m, &fb);
			if (r.lo >= f->lo && r.hi <= f->hi)
				continue;
			if (r.lo > -((wide)1 << 62) && r.hi < (wide)1 << 62 && f->lo <= f->hi &&
			    f->rounds++ < 6) {
				here = true;
				if (r.lo < f->lo)
					f->lo = f->rounds > 3 ? -((wide)1 << 62) : r.lo;
				if (r.hi > f->hi)
					f->hi = f->rounds > 3 ? (wide)1 << 62 : r.hi;
				continue;
			}
		}
		here = true;
		*f = p->facts[--p->fact_count];
		break;
	}
	for (int32_t b = 0; b < t->depth; b++)
		if ((t->written[b / 8] & ~w->m.s.written[b / 8]) >> b % 8 & 1) {
			if (!p->unwritten)
				p->unwritten = calloc(STACK_MOST, 1);
			here |= !p->unwritten[b];
			p->unwritten[b] = 1;
		}
	for (unsigned v = 0; v < 16; v++)
		if (t->vector[v] & ~w->m.s.vector[v]) {
			here = true;
			p->vector[v] &= w->m.s.vector[v];
		}
	if (s->flags.undefined & ~t->flags.undefined) {
		here = true;
		p->undefined |= s->flags.undefined;
	}
	if (!here && p->fill_count) {
		here = true;
		p->fill_count--;
	}
	*changed = true;
	return here ||
	       certify_fail(k, FAY_RULE_CRT_JOIN, w->nodes[at].address, "no list was found");
}

uint32_t certify_gather(struct waiting *list, struct state ***states)
{
	uint32_t n = 0;

	for (struct waiting *i = list; i; i = i->next)
		n++;
	*states = calloc(n + 1, sizeof(**states));
	n = 0;
	for (struct waiting *i = list; i; i = i->next)
		(*states)[n++] = i->s;
	return n;
}

/* A list for what the node is entered with; w->t has the state. */
bool certify_settle(struct certify *k, uint32_t at, struct state **states, uint32_t n,
		    struct meaning *x, uint32_t *vars)
{
	for (unsigned round = 0; round < 24; round++) {
		bool changed = false;

		if (!certify_make(k, at, states[0], x, vars))
			return false;
		for (uint32_t i = 0; i < n; i++) {
			struct state *t = NULL;

			(void)t;
			if (!certify_check_one(k, at, states[i], states[0], x, *vars, &changed))
				return false;
			if (changed)
				break;
		}
		if (!changed)
			return true;
	}
	return certify_fail(k, FAY_RULE_CRT_JOIN, k->w->nodes[at].address,
			    "a join does not settle");
}
