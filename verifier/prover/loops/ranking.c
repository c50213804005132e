/* SPDX-License-Identifier: MIT */
/*
 * How the values at a loop's head move from one visit to the next, and what bound on the visits
 * follows.
 *
 * The amounts come from running the transfer functions over the body once more, starting from the
 * head with each location tagged with itself (struct fay_value: origin, dlo, dhi); a copy, a sum
 * with a number of known range, a spill and a reload carry tags along. At a join, tags with
 * differing origins are dropped; at an inner loop's head a distance that still changes is dropped.
 *
 * Ranking. A location whose value at the head lies in an interval [low, high] that the fixpoint
 * proved, and that moves by an amount within [dlo, dhi] of one sign each time: if high - low + |d|
 * stays below 2^64 the value cannot come back by wrapping, so it is strictly monotone, and the head
 * is visited at most (high - low) / min|d| + 1 times for each time the loop is entered. The same
 * holds for the sum of a relation (relations.c) whose two sides move: it is a sum of integers, and
 * bounded by the relation or the intervals.
 *
 * Templates. Where the intervals are not enough, one value that stays within bounds says how far
 * the others have gone: if x moves by dx and y by dy, then dy * x - dx * y does not change. These
 * pairs are guesses for the next fixpoint, which proves them or not.
 */
#include "loops.h"

#include <stdlib.h>

typedef unsigned __int128 uwide;
typedef __int128 wide;

static bool origin_merge(struct fay_value *to, const struct fay_value *from, bool give_up)
{
	uint32_t origin = from->size == to->size ? from->origin : 0;
	struct fay_value old = *to;

	if (!to->origin)
		return false;
	if (to->origin != origin) {
		to->origin = 0;
		return true;
	}
	if (from->dlo < to->dlo)
		to->dlo = from->dlo;
	if (from->dhi > to->dhi)
		to->dhi = from->dhi;
	if (to->dlo == old.dlo && to->dhi == old.dhi)
		return false;
	if (give_up)
		to->origin = 0;
	return true;
}

/* Copies tags onto a copy of the proved state of `node`. */
static struct fay_state *tagged_copy(const struct fay_analysis *an, uint32_t node,
				     const struct fay_state *from)
{
	const struct fay_state *proved = an->in[node];
	struct fay_state *s = fay_state_create(proved->count);

	if (!s)
		return NULL;
	fay_state_copy(s, proved);
	for (uint32_t i = 0; i < s->count; i++) {
		const struct fay_value *v = from ? &from->loc[i] : NULL;
		bool numeric = fay_value_numeric(&s->loc[i]) && s->loc[i].init == 0xff;

		s->loc[i].origin = 0;
		if (!numeric)
			continue;
		if (!v) {
			s->loc[i].origin = i + 1;
			s->loc[i].dlo = s->loc[i].dhi = 0;
		} else if (v->origin && (i < LOC_SLOTS || v->size == s->loc[i].size)) {
			s->loc[i].origin = v->origin;
			s->loc[i].dlo = v->dlo;
			s->loc[i].dhi = v->dhi;
		}
	}
	return s;
}

static bool merge_tags(struct fay_ranking *r, struct fay_state **slot, uint32_t node,
		       const struct fay_state *from, bool give_up)
{
	bool changed = false;

	if (!r->an->in[node] || r->an->in[node]->count != from->count)
		return false;
	if (!*slot) {
		*slot = tagged_copy(r->an, node, from);
		r->failed |= !*slot;
		return true;
	}
	for (uint32_t i = 0; i < from->count; i++)
		changed |= origin_merge(&(*slot)->loc[i], &from->loc[i], give_up);
	return changed;
}

static void tag_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
		     struct fay_state *s)
{
	struct fay_ranking *r = context;

	(void)an;
	(void)from;
	if (to == r->header) {
		merge_tags(r, &r->back, to, s, false);
		return;
	}
	if (to > r->last || !fay_graph_in_loop(r->an->graph, to, r->header))
		return;
	if (merge_tags(r, &r->tagged[to], to, s, r->changes[to] > 2)) {
		r->pending[to] = 1;
		if (r->changes[to] < 255)
			r->changes[to]++;
	}
}

/* Iterations by one location's interval; UINT64_MAX if it gives no bound. */
static uint64_t bound_by(uint64_t span, int64_t dlo, int64_t dhi)
{
	uint64_t least, most, count;

	if (dlo > 0) {
		least = (uint64_t)dlo;
		most = (uint64_t)dhi;
	} else if (dhi < 0) {
		least = -(uint64_t)dhi;
		most = -(uint64_t)dlo;
	} else {
		return UINT64_MAX;
	}
	if ((uwide)span + most > UINT64_MAX)
		return UINT64_MAX;
	count = span / least;
	return count == UINT64_MAX ? count : count + 1;
}

/* The step of location i as an integer, if its reading moves without wrapping. */
static bool exact_step(const struct fay_state *head, const struct fay_state *back, uint32_t i,
		       wide *dlo, wide *dhi)
{
	const struct fay_value *at = &head->loc[i], *v = &back->loc[i];
	int64_t end;

	if (v->origin != i + 1 || !fay_value_numeric(at) ||
	    __builtin_add_overflow(at->s.smin, v->dlo, &end) ||
	    __builtin_add_overflow(at->s.smax, v->dhi, &end))
		return false;
	*dlo = v->dlo;
	*dhi = v->dhi;
	return true;
}

/* a * x + b * y lies within bounds at every visit, and moves by a * dx + b * dy. */
static uint64_t bound_by_relation(const struct fay_state *head, const struct fay_state *back,
				  const struct fay_relation *rel)
{
	uint32_t x = rel->x - 1, y = rel->y - 1;
	wide xlo, xhi, ylo, yhi, lo, hi, least, most, span;

	if (rel->dx || rel->dy || x >= head->count || y >= head->count ||
	    !exact_step(head, back, x, &xlo, &xhi) || !exact_step(head, back, y, &ylo, &yhi))
		return UINT64_MAX;
	lo = rel->a * (wide)head->loc[x].s.smin +
	     rel->b * (wide)(rel->b < 0 ? head->loc[y].s.smax : head->loc[y].s.smin);
	hi = rel->a * (wide)head->loc[x].s.smax +
	     rel->b * (wide)(rel->b < 0 ? head->loc[y].s.smin : head->loc[y].s.smax);
	/* The ends of int64_t stand for no bound, and the sum of intervals may lie beyond them. */
	lo = rel->lo != INT64_MIN && rel->lo > lo ? rel->lo : lo;
	hi = rel->hi != INT64_MAX && rel->hi < hi ? rel->hi : hi;
	least = rel->a * xlo + rel->b * (rel->b < 0 ? yhi : ylo);
	most = rel->a * xhi + rel->b * (rel->b < 0 ? ylo : yhi);
	if (most < 0) {
		wide t = least;

		least = -most;
		most = -t;
	}
	span = hi - lo;
	if (least <= 0 || span < 0 || span / least >= UINT64_MAX)
		return UINT64_MAX;
	return (uint64_t)(span / least) + 1;
}

uint64_t fay_ranking_bound_of(const struct fay_state *head, const struct fay_state *back)
{
	uint64_t best = UINT64_MAX;

	if (!back)
		return 1; /* no back edge is ever taken */
	for (uint32_t i = 0; i < head->count; i++) {
		const struct fay_value *at = &head->loc[i], *v = &back->loc[i];
		uint64_t by_unsigned, by_signed;

		if (v->origin != i + 1 || !fay_value_numeric(at) || at->init != 0xff ||
		    at->size != v->size)
			continue;
		by_unsigned = bound_by(at->s.umax - at->s.umin, v->dlo, v->dhi);
		by_signed = bound_by((uint64_t)at->s.smax - (uint64_t)at->s.smin, v->dlo, v->dhi);
		best = by_unsigned < best ? by_unsigned : best;
		best = by_signed < best ? by_signed : best;
	}
	for (uint32_t i = 0; i < head->relation_count; i++) {
		uint64_t count = bound_by_relation(head, back, &head->relations[i]);

		best = count < best ? count : best;
	}
	return best;
}

void fay_ranking_merge(struct fay_state *back, const struct fay_state *s)
{
	for (uint32_t i = 0; i < back->count; i++)
		origin_merge(&back->loc[i], &s->loc[i], false);
}

bool fay_ranking_unmoved(const struct fay_state *back, uint32_t i)
{
	const struct fay_value *v = &back->loc[i];

	return v->origin == i + 1 && v->dlo == 0 && v->dhi == 0;
}

static bool late(const struct fay_analysis *an)
{
	return an->deadline && fay_monotonic_ns() > an->deadline;
}

/* Leaves the tags at the back edges in r->back. */
void fay_ranking_run(struct fay_ranking *r, uint32_t header)
{
	struct fay_analysis *an = r->an;

	r->header = header;
	r->last = an->graph->nodes[header].last;
	r->tagged[header] = tagged_copy(an, header, NULL);
	r->failed |= !r->tagged[header];
	r->pending[header] = 1;
	for (uint32_t node = header; node <= r->last && !r->failed;) {
		uint32_t next = node + 1;

		if (r->pending[node]) {
			const struct fay_node *n = &an->graph->nodes[node];

			r->pending[node] = 0;
			fay_node_run(an, node, r->tagged[node], tag_edge, r);
			r->failed |= late(an);
			for (uint32_t k = 0; k < fay_node_fanout(n); k++) {
				uint32_t to = fay_node_succ(n, k);

				if (to != FAY_NONE && to <= r->last && to < next && r->pending[to])
					next = to;
			}
		}
		node = next;
	}
}

void fay_ranking_clear(struct fay_ranking *r)
{
	for (uint32_t node = r->header; node <= r->last; node++) {
		free(r->tagged[node]);
		r->tagged[node] = NULL;
		r->pending[node] = r->changes[node] = 0;
	}
	free(r->back);
	r->back = NULL;
}

uint64_t fay_ranking_bound(struct fay_ranking *r, uint32_t header)
{
	const struct fay_analysis *an = r->an;
	uint64_t bound;

	fay_ranking_run(r, header);
	bound = r->failed ? UINT64_MAX : fay_ranking_bound_of(an->in[header], r->back);
	fay_ranking_clear(r);
	return bound;
}

bool fay_ranking_init(struct fay_ranking *r, struct fay_analysis *an)
{
	uint32_t n = an->graph->node_count;

	*r = (struct fay_ranking){ .an = an,
				   .tagged = calloc(n, sizeof(struct fay_state *)),
				   .pending = calloc(n, 1),
				   .changes = calloc(n, 1) };
	return r->tagged && r->pending && r->changes;
}

void fay_ranking_deinit(struct fay_ranking *r)
{
	free(r->tagged);
	free(r->pending);
	free(r->changes);
}

/* ---- templates ---- */

static uint64_t span_of(const struct fay_scalar *s)
{
	uint64_t by_sign = (uint64_t)s->smax - (uint64_t)s->smin, plain = s->umax - s->umin;

	return by_sign < plain ? by_sign : plain;
}

/* Whether location i moves; the amounts. */
static bool moves(const struct fay_ranking *r, uint32_t i, int64_t *dlo, int64_t *dhi)
{
	const struct fay_value *v = &r->back->loc[i];

	if (v->origin != i + 1 || !fay_value_numeric(&r->an->in[r->header]->loc[i]) ||
	    (i >= LOC_FLAGS_A && i <= LOC_FLAGS_R))
		return false;
	*dlo = v->dlo;
	*dhi = v->dhi;
	return (v->dlo || v->dhi) && v->dlo > -STEP_MAX && v->dhi < STEP_MAX;
}

/* The two locations of constant step that are known best. */
static unsigned find_clocks(const struct fay_ranking *r, uint32_t clocks[2])
{
	const struct fay_state *head = r->an->in[r->header];
	unsigned count = 0;

	for (uint32_t i = 0; i < head->count; i++) {
		int64_t dlo, dhi;
		uint64_t span = span_of(&head->loc[i].s);

		if (!moves(r, i, &dlo, &dhi) || dlo != dhi || span > (uint64_t)1 << 40)
			continue;
		if (count && span_of(&head->loc[clocks[0]].s) > span) {
			clocks[1] = clocks[0];
			clocks[0] = i;
			count = 2;
		} else if (count < 2 || span_of(&head->loc[clocks[1]].s) > span) {
			clocks[count ? 1 : 0] = i;
			count = count ? 2 : 1;
		}
	}
	return count;
}

static bool add_template(struct fay_analysis *an, struct fay_template t)
{
	void *grown;

	if (!t.b || an->template_count == FAY_MAX_TEMPLATES)
		return true;
	if (!(an->template_count & (an->template_count - 1))) { /* a power of two, or none */
		grown = realloc(an->templates,
				(an->template_count ? 2 * an->template_count : 1) * sizeof(t));
		if (!grown)
			return false;
		an->templates = grown;
	}
	an->templates[an->template_count++] = t;
	return true;
}

/* |dy| * x - dx * y: does not grow with x's greatest amount, does not shrink with its least. */
static bool relate(struct fay_ranking *r, uint32_t x, int64_t dx, uint32_t y, int64_t dy)
{
	int64_t a = dy < 0 ? -dy : dy, b = dy < 0 ? dx : -dx, f = a, g = b < 0 ? -b : b;
	struct fay_template t = { .node = r->header, .x = x, .y = y };

	while (g) {
		int64_t rest = f % g;

		f = g;
		g = rest;
	}
	t.a = a / f;
	t.b = b / f;
	if (x > y) {
		int64_t sign = t.b < 0 ? -1 : 1;
		struct fay_template o = t;

		t.x = o.y;
		t.y = o.x;
		t.a = sign * o.b;
		t.b = sign * o.a;
	}
	return add_template(r->an, t);
}

bool fay_ranking_templates(struct fay_ranking *r, uint32_t header)
{
	const struct fay_state *head = r->an->in[header];
	uint32_t clocks[2], before = r->an->template_count;
	unsigned count;
	bool ok = true;

	fay_ranking_run(r, header);
	count = r->back && !r->failed ? find_clocks(r, clocks) : 0;
	for (unsigned k = 0; k < count; k++)
		for (uint32_t x = 0;
		     ok && x < head->count && r->an->template_count - before < FAY_LOOP_TEMPLATES;
		     x++) {
			int64_t dlo, dhi, step = r->back->loc[clocks[k]].dlo;

			if (x == clocks[k] || !moves(r, x, &dlo, &dhi) ||
			    span_of(&head->loc[x].s) <= span_of(&head->loc[clocks[k]].s))
				continue;
			ok = relate(r, x, dhi, clocks[k], step) &&
			     (dlo == dhi || relate(r, x, dlo, clocks[k], step));
		}
	fay_ranking_clear(r);
	return ok && !r->failed;
}
