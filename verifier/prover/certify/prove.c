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

void certify_take(struct certify *k, uint32_t at, const struct state *s)
{
	const struct place *p = &k->places[at];

	certify_assign(&k->w->m.s, s);
	k->w->m.defs = 0;
	for (unsigned list = 0; list < 2; list++)
		for (const struct waiting *i = list ? p->back : p->in; i; i = i->next) {
			if (i->s != s)
				continue;
			k->w->m.defs = i->defs;
			memcpy(k->w->m.def, i->def, sizeof(i->def));
		}
}

/* The node's state from `s`, in w->t. */
bool certify_make(struct certify *k, uint32_t at, struct state *s, struct meaning *x, uint32_t *n)
{
	certify_take(k, at, s);
	use_list(k, at);
	if (walk_make(k->w, at, x, n))
		return true;
	k->c->refusal = k->w->m.refusal.rule ? k->w->m.refusal : k->w->t.refusal;
	return false;
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
	lo = certify_stop(k, &k->places[at], r, r->lo, false);
	hi = certify_stop(k, &k->places[at], r, r->hi, true);
	r->lo = l < INT32_MIN && l < lo ? lo : l;
	r->hi = h > INT32_MAX && h > hi ? hi : h;
}

/* A range that was too small. */
static bool widen(struct certify *k, uint32_t at, struct rep *r, struct range seen)
{
	wide lo = seen.lo < r->lo ? seen.lo : r->lo, hi = seen.hi > r->hi ? seen.hi : r->hi;
	bool down = lo<r->lo, up = hi> r->hi;

	if (r->widened > 32)
		return false;
	r->lo = lo;
	r->hi = hi;
	if (!r->widened)
		certify_hint_range(k, at, r);
	else if (up)
		r->hi = certify_stop(k, &k->places[at], r, hi, true);
	if (r->widened && down)
		r->lo = certify_stop(k, &k->places[at], r, lo, false);
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

/* A state that is not included in a node's (w->t), and what the node's has for a list. */
struct doubt {
	struct certify *k;
	struct place *p;
	uint32_t at;
	struct state *s, *first;
	struct meaning *x; /* the node's variables */
	uint32_t n;
};

static void number_anew(const struct doubt *d, struct rep *r)
{
	struct state *both[2] = { d->first, d->s };

	certify_make_number(d->k, r, both, 2);
}

/* The location is forgotten. What was a form of it becomes a number of its own. */
static void forget(const struct doubt *d, struct rep *r)
{
	r->kind = REP_FORGET;
	for (uint32_t i = 0; i < d->p->rep_count; i++) {
		struct rep *q = &d->p->reps[i];

		if (q->kind != REP_FORM || !certify_names(q, r->location))
			continue;
		q->no_form |= !q->also;
		q->no_sum |= q->also;
		number_anew(d, q);
	}
}

/* A multiple of a variable: it ranges wider, or the location gets another number. */
static void weaken_multiple(const struct doubt *d, struct rep *r, struct value *have)
{
	struct machine *m = &d->k->w->m;
	wide g = r->mult;
	struct range seen;
	struct form f;

	if (value_form(m, have, 64, r->lo < 0, &f) && !((f.c - r->off) % g) && !(f.k[0] % g) &&
	    !(f.k[1] % g)) {
		seen = form_range(m, &f);
		seen = (struct range){ (seen.lo - r->off) / g, (seen.hi - r->off) / g };
		if (widen(d->k, d->at, r, seen))
			return;
	}
	r->no_mult = true;
	r->widened = 0;
	number_anew(d, r);
	if (r->kind == REP_FORM)
		r->kind = REP_FORGET;
}

/* The variables of the list that the state has no number for. False: it has one for each. */
static bool weaken_variables(const struct doubt *d)
{
	struct walk *w = d->k->w;
	bool weaker = false;

	for (uint32_t i = 0; i < d->n; i++) {
		struct rep *r = certify_rep_of(d->p, d->x[i].location);
		struct var *v = var_find(&w->t.s, d->x[i].id);
		struct value *have;
		struct range seen;

		if (!v || walk_meaning(w, &d->x[i], v))
			continue;
		weaker = true;
		have = walk_locate(&w->m.s, d->x[i].location);
		if (!certify_numeric(have)) {
			forget(d, r);
			continue;
		}
		if (r->mult != 1) {
			weaken_multiple(d, r, have);
			continue;
		}
		seen = value_range(&w->m, have, r->bits, r->lo < 0);
		if (value_range(&w->m, have, 64, false).hi >> r->bits && have->bits > r->bits)
			r->bits = 64;
		if (seen.lo >= r->lo && seen.hi <= r->hi) { /* of a word it is another reading */
			seen = (struct range){ 0, (wide)(((unsigned __int128)1 << r->bits) - 1) };
			if (r->lo < 0)
				r->lo = 0;
		}
		if (!widen(d->k, d->at, r, seen)) {
			r->bits = 64;
			r->lo = 0;
			r->hi = UINT64_MAX;
		}
	}
	return weaker;
}

/* A location that the list has nothing of, or a form. */
static void weaken_location(const struct doubt *d, struct rep *r, const struct value *have,
			    const struct value *want)
{
	if (!certify_numeric(have) || !certify_numeric(want) || have->kind != want->kind ||
	    have->tag != want->tag) {
		r->kind = REP_FORGET;
		return;
	}
	d->p->parted_form |= r->kind == REP_FORM && r->k;
	r->no_form |= r->kind == REP_FORM && r->k && !r->also;
	r->no_sum |= r->kind == REP_FORM && r->also;
	number_anew(d, r);
	if (r->kind == REP_FORM) {
		r->kind = REP_NUMBER;
		r->bits = 64;
		r->lo = 0;
		r->hi = UINT64_MAX;
	} else if (r->kind == REP_NUMBER) {
		struct state *both[2] = { d->first, d->s };

		certify_hint_range(d->k, d->at, r);
		certify_find_tied(d->k, d->p, r, both, 2);
	}
}

/* Locations at which the state has something else. `weaker`: a variable was weakened before. */
static bool weaken_locations(const struct doubt *d, bool weaker)
{
	struct walk *w = d->k->w;
	struct state *t = &w->t.s;

	for (unsigned i = 0; i < 16u + t->slots; i++) {
		uint64_t location = i < 16 ? i : certify_location_of(&t->slot[i - 16]);
		struct value *want = walk_locate(t, location);
		struct value *have = walk_locate(&w->m.s, location);
		struct rep *r = certify_rep_of(d->p, location);

		if (walk_same(w, d->x, d->n, location, have, want))
			continue;
		if (weaker && r && r->kind == REP_FORM)
			continue; /* its base may be at fault */
		weaker = true;
		if (have && certify_numeric(want) && have->kind == want->kind &&
		    (have->init & want->init) != want->init) {
			if (!r)
				r = certify_rep_add(d->p, location);
			r->bytes &= have->init;
		} else if (r && r->kind == REP_NUMBER) {
			if (!certify_numeric(have) || have->kind != want->kind ||
			    have->tag != want->tag)
				forget(d, r);
		} else {
			if (!r)
				r = certify_rep_add(d->p, location);
			weaken_location(d, r, have, want);
		}
	}
	return weaker;
}

uint64_t certify_pinned_at(uint32_t at, uint32_t pin, uint64_t which)
{
	return pin >= PIN_SIZES ? LOCATION_SIZES + (pin - PIN_SIZES)
				: LOCATION_COUNTS + ((uint64_t)(at + 1 - pin) << 8) + which;
}

/* Variables from before the node that range wider. */
static bool weaken_ranges(const struct doubt *d)
{
	struct walk *w = d->k->w;
	struct state *t = &w->t.s;
	bool weaker = false;

	for (unsigned i = 0; i < t->vars; i++) {
		struct var *v = &t->var[i], *have = var_find(&w->m.s, v->id);
		struct range want = var_range(v), r;
		struct rep *rep;

		if (d->n && v->id >= d->x[0].id && v->id <= d->x[d->n - 1].id)
			continue;
		r = have ? var_range(have) : want;
		if (have && r.lo >= want.lo && r.hi <= want.hi)
			continue;
		if (have && v->pin) {
			uint64_t which = 0;

			for (unsigned j = 0; j < i; j++)
				which += t->var[j].pin == v->pin;
			rep = certify_rep_add(d->p, certify_pinned_at(d->at, v->pin, which));
			rep->kind = REP_RANGE;
			rep->lo = r.lo < want.lo ? r.lo : want.lo;
			rep->hi = r.hi > want.hi ? r.hi : want.hi;
			weaker = true;
			continue;
		}
		/* whoever names it gets a number of its own */
		for (unsigned j = 0; j < 16u + t->slots; j++) {
			uint64_t location = j < 16 ? j : certify_location_of(&t->slot[j - 16]);
			struct value *named = walk_locate(t, location);

			if (!certify_numeric(named) ||
			    (named->f.v[0] != v->id && named->f.v[1] != v->id))
				continue;
			weaker = true;
			number_anew(d, certify_rep_add(d->p, location));
		}
	}
	return weaker;
}

/* So often a fact becomes a wider one, of these so often up to a number of the code, and then up to
 * -1, 0 or 1. */
#define FACT_ROUNDS 12u
#define FACT_STOPS 4u
#define FACT_SIGNS 7u

static const wide fact_most = (wide)1 << 62;

static void fact_nearer(wide n, wide at, bool up, wide *best)
{
	if (up ? n >= at && n < *best : n <= at && n > *best)
		*best = n;
}

/* Where the bound of a fact may be that has to be wider than `at`. */
static wide fact_stop(const struct certify *k, unsigned rounds, wide at, bool up)
{
	wide best = up ? fact_most : -fact_most;

	if (rounds == 1)
		return at;
	for (uint32_t i = 0; i < k->stop_count && rounds <= FACT_STOPS; i++) {
		fact_nearer(k->stops[i], at, up, &best);
		fact_nearer(-k->stops[i], at, up, &best);
	}
	for (int n = -1; n <= 1 && rounds <= FACT_SIGNS; n++)
		fact_nearer(n, at, up, &best);
	return best;
}

/* A fact that is not so becomes one of a wider range, and then none: false. */
static bool weaken_fact(const struct doubt *d, struct relation *f, const struct range *r)
{
	if (r->lo <= -fact_most || r->hi >= fact_most || f->lo > f->hi ||
	    f->rounds++ == FACT_ROUNDS)
		return false;
	/* a round takes something of what is left: so much is left as long as there is another */
	if (r->lo < f->lo && f->rounds == 1 && f->lo - r->lo <= r->lo)
		f->lo -= r->lo;
	else if (r->lo < f->lo)
		f->lo = fact_stop(d->k, f->rounds, r->lo, false);
	if (r->hi > f->hi)
		f->hi = fact_stop(d->k, f->rounds, r->hi, true);
	return true;
}

static bool weaken_facts(const struct doubt *d)
{
	bool weaker = false;

	for (uint32_t i = 0; i < d->p->fact_count;) {
		struct relation *f = &d->p->facts[i];
		struct range r;
		bool known = certify_related(d->k, d->at, f, &r);

		if (known && r.lo >= f->lo && r.hi <= f->hi) {
			i++;
			continue;
		}
		weaker = true;
		if (known && weaken_fact(d, f, &r))
			i++;
		else
			*f = d->p->facts[--d->p->fact_count];
	}
	return weaker;
}

/* Bytes that count as written, and flags. */
static bool weaken_rest(const struct doubt *d)
{
	struct state *have = &d->k->w->m.s, *t = &d->k->w->t.s;
	struct place *p = d->p;
	bool weaker = false;

	for (int32_t b = 0; b < t->depth; b++)
		if ((t->written[b / 8] & ~have->written[b / 8]) >> b % 8 & 1) {
			weaker |= !p->unwritten || !p->unwritten[b];
			certify_mark_unwritten(p, b);
		}
	for (unsigned v = 0; v < 16; v++)
		if (t->vector[v] & ~have->vector[v]) {
			weaker = true;
			p->vector[v] &= have->vector[v];
		}
	if (d->s->flags.undefined & ~t->flags.undefined) {
		weaker = true;
		p->undefined |= d->s->flags.undefined;
	}
	return weaker;
}

bool certify_check_one(struct certify *k, uint32_t at, struct state *s, struct state *first,
		       struct meaning *x, uint32_t n, bool *changed)
{
	struct doubt d = {
		.k = k, .p = &k->places[at], .at = at, .s = s, .first = first, .x = x, .n = n
	};
	bool weaker;

	certify_take(k, at, s);
	if (walk_includes(k->w, x, n))
		return true;
	if (s->depth != k->w->t.s.depth)
		return certify_fail(k, FAY_RULE_STK_POINTER, k->w->nodes[at].address,
				    "depths differ");
	weaker = weaken_variables(&d);
	weaker = weaken_locations(&d, weaker);
	weaker |= weaken_ranges(&d);
	weaker = weaker || weaken_facts(&d);
	weaker |= weaken_rest(&d);
	if (!weaker && d.p->fill_count) {
		weaker = true;
		d.p->fill_count--;
	}
	if (!weaker && d.p->fact_count) { /* the checker reads what it names in another way */
		weaker = true;
		d.p->fact_count--;
	}
	*changed = true;
	return weaker ||
	       certify_fail(k, FAY_RULE_CRT_JOIN, k->w->nodes[at].address, "no list was found");
}

uint32_t certify_gather(struct waiting *list, struct state ***states)
{
	uint32_t n = 0;

	for (struct waiting *i = list; i; i = i->next)
		n++;
	*states = calloc(n + 1, sizeof(**states));
	if (!*states)
		abort();
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
