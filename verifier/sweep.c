/* SPDX-License-Identifier: MIT */
/*
 * The first attempt at a proof, for the many probes that need no relations between values: each block outside loops is run once, and checked as it
 * is run; each innermost loop is run until its head's state holds, which mostly takes two or three rounds, of which the last is the check.
 *
 * The nodes are visited in a weak topological order (order.c), so all that leads to a node from outside its loop has run before it. What an edge brings waits
 * at its target. A node's state is what waits there, or if there is more, the join, and then each that waits is checked to be included in it. A loop's head
 * keeps its state; at the end of a round, what came over the back edges either is included in it, or is joined and widened into it, and the round was in
 * vain: its facts are taken back, what left the loop is thrown away, and the loop is run again. So in what remains, each block was run, with an->checking,
 * from a state that includes all that its edges bring: the invariant and its check in one (docs/verifier.md). Joins, widening and the order are not trusted.
 *
 * Ranking comes along. At the beginning of a round each location of the head is tagged with itself (struct fay_value: origin), and what the back edges
 * bring says how far each has moved. The tags of the loop around are put together from those at the inner loop's entry, for the locations that the inner
 * loop does not change.
 *
 * The states know no relations and no ranges of arrays, and no obligation may be left open: if that does not do, nothing was decided, and the thorough
 * way (fixpoint.c) begins from the start. So every limit here costs time only. States are released as soon as nothing waits for them.
 */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

#include "fixpoint.h"
#include "order.h"
#include "pool.h"
#include "ranking.h"
#include "widening.h"

#define ROUNDS_MAX 8u   /* of one stay in a loop */
#define RUNS_PER_NODE 12u
#define STATE_BYTES_MAX ((size_t)256 << 20)

/* A loop that is being run. */
struct frame {
	uint32_t head, mark; /* mark: length of the log when the round began */
	unsigned rounds;
	bool narrowing;           /* this round tries a smaller state than the one that held */
	bool settled;             /* no smaller one is to be tried */
	struct fay_state *entered; /* what came from outside, with the tags of the loop around */
	struct fay_state *wide;    /* narrowing: the state that held */
	struct fay_probe_facts facts; /* when the round began */
	uint64_t obligations;
	int64_t deepest;
};

/* What left a loop while it was run. */
struct exit {
	uint32_t to;
	struct fay_state *state;
};

struct sweep {
	struct fay_analysis *an;
	struct fay_order order;
	struct fay_state **waiting; /* per node, latest first */
	struct frame *frames;
	uint32_t depth, frames_capacity;
	struct exit *log;
	uint32_t log_count, log_capacity;
	struct fay_widening widening;
	struct fay_pool pool;
	uint64_t runs;
};

static bool fall_short(struct sweep *w)
{
	w->an->fell_short = true;
	return false;
}

static bool inside(const struct sweep *w, uint32_t node, uint32_t head)
{
	return w->order.of[node] >= w->order.of[head] && w->order.of[node] < w->order.end[head];
}

static struct fay_state *copy_of(struct sweep *w, const struct fay_state *s)
{
	struct fay_state *copy = fay_pool_copy(&w->pool, s);

	if (!copy)
		fall_short(w);
	return copy;
}

static void drop(struct sweep *w, struct fay_state *s) { fay_pool_drop(&w->pool, s); }

/* ---- edges ---- */

static bool grow(void **array, uint32_t *capacity, uint32_t count, size_t size)
{
	void *grown;

	if (count < *capacity)
		return true;
	grown = realloc(*array, 2 * ((size_t)*capacity + 8) * size);
	if (!grown)
		return false;
	*array = grown;
	*capacity = 2 * (*capacity + 8);
	return true;
}

static void arrive(struct fay_analysis *an, void *context, uint32_t from, uint32_t to, struct fay_state *s)
{
	struct sweep *w = context;
	struct fay_state *copy;

	/* A jump through a table may have one target many times. */
	if (an->fell_short || (w->waiting[to] && w->waiting[to]->from == from && an->graph->nodes[from].table))
		return;
	copy = copy_of(w, s);
	if (!copy)
		return;
	copy->from = from;
	copy->next = w->waiting[to];
	w->waiting[to] = copy;
	if (!w->depth || inside(w, to, w->frames[w->depth - 1].head))
		return;
	if (grow((void **)&w->log, &w->log_capacity, w->log_count, sizeof(*w->log)))
		w->log[w->log_count++] = (struct exit){ .to = to, .state = copy };
	else
		fall_short(w);
}

/* Makes one state of all that wait for `node`, and checks that it includes each. NULL: none, or it fell short. */
static struct fay_state *gather(struct sweep *w, uint32_t node)
{
	static const struct fay_join_plan plan;
	struct fay_state *list = w->waiting[node], *joined;

	w->waiting[node] = NULL;
	if (!list || !list->next)
		return list;
	joined = copy_of(w, list);
	for (struct fay_state *s = list->next; s && joined && !w->an->fell_short; s = s->next)
		if (s->count != joined->count || !fay_state_join(joined, s, &plan))
			fall_short(w);
	for (struct fay_state *s = list; s && joined && !w->an->fell_short; s = s->next)
		if (!fay_state_includes(joined, s))
			fall_short(w);
	fay_pool_drop_list(&w->pool, list);
	if (!w->an->fell_short)
		return joined;
	drop(w, joined);
	return NULL;
}

static void keep(struct sweep *w, uint32_t node, struct fay_state *s)
{
	struct fay_analysis *an = w->an;

	if (an->reached)
		an->reached[node] = 1;
	if (an->in[node] == s)
		return;
	if (!an->keep) {
		drop(w, s);
		return;
	}
	drop(w, an->in[node]);
	an->in[node] = s;
}

static void run(struct sweep *w, uint32_t node, struct fay_state *s)
{
	struct fay_analysis *an = w->an;

	if (++w->runs > (uint64_t)RUNS_PER_NODE * an->graph->node_count + 256)
		fall_short(w);
	if (an->moves)
		an->moves[node] = 0;
	fay_node_run(an, node, s, arrive, w);
	keep(w, node, s);
}

/* ---- loops ---- */

/* Throws away what left the loop since the round began. */
static void take_back(struct sweep *w, const struct frame *f)
{
	while (w->log_count > f->mark) {
		const struct exit *e = &w->log[--w->log_count];

		/* What waited within the loop is gone already. */
		if (inside(w, e->to, f->head) || w->waiting[e->to] != e->state)
			continue;
		w->waiting[e->to] = e->state->next;
		drop(w, e->state);
	}
}

static void tag(struct fay_state *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct fay_value *v = &s->loc[i];

		v->origin = fay_value_numeric(v) && v->init == 0xff ? i + 1 : 0;
		v->dlo = v->dhi = 0;
	}
}

/* (Re)starts a round. */
static void start(struct sweep *w, struct frame *f)
{
	struct fay_analysis *an = w->an;

	f->mark = w->log_count;
	*an->facts = f->facts;
	an->obligation_count = f->obligations;
	an->deepest = f->deepest;
	tag(an->in[f->head]);
	run(w, f->head, an->in[f->head]);
}

/* A loop is entered with `entered`. Its head may have a state from when it was entered in the last round of the loop around. */
static void enter(struct sweep *w, uint32_t head, struct fay_state *entered)
{
	static const struct fay_join_plan plan;
	struct fay_analysis *an = w->an;
	struct fay_state *joined;
	struct frame *f;

	if (!grow((void **)&w->frames, &w->frames_capacity, w->depth, sizeof(*w->frames))) {
		drop(w, entered);
		fall_short(w);
		return;
	}
	f = &w->frames[w->depth++];
	*f = (struct frame){ .head = head, .entered = entered, .facts = *an->facts, .obligations = an->obligation_count, .deepest = an->deepest };
	joined = copy_of(w, entered);
	if (joined && !fay_state_canonical(joined))
		fall_short(w);
	if (joined && !an->fell_short && an->in[head] && (an->in[head]->count != joined->count || !fay_state_join(joined, an->in[head], &plan)))
		fall_short(w);
	drop(w, an->in[head]);
	an->in[head] = joined;
	if (!an->fell_short)
		start(w, f);
}

static bool holds(struct sweep *w, const struct frame *f)
{
	const struct fay_state *head = w->an->in[f->head];

	for (struct fay_state *s = w->waiting[f->head]; s; s = s->next)
		if (!fay_state_includes(head, s))
			return false;
	return fay_state_includes(head, f->entered);
}

/* The round again, from `state`. */
static void again(struct sweep *w, struct frame *f, struct fay_state *state)
{
	fay_pool_drop_list(&w->pool, w->waiting[f->head]);
	w->waiting[f->head] = NULL;
	take_back(w, f);
	w->an->in[f->head] = state;
	if (!w->an->fell_short)
		start(w, f);
}

static void widen(struct sweep *w, struct frame *f)
{
	static const struct fay_join_plan plan;
	struct fay_analysis *an = w->an;
	struct fay_state *old = an->in[f->head], *joined = copy_of(w, old);

	for (struct fay_state *s = w->waiting[f->head]; s && joined && !an->fell_short; s = s->next)
		if (s->count != joined->count || !fay_state_join(joined, s, &plan))
			fall_short(w);
	if (++f->rounds > ROUNDS_MAX)
		fall_short(w);
	if (joined && !an->fell_short) {
		if (f->rounds == 1 || w->widening.head != f->head)
			fay_widening_loop(&w->widening, an, &w->order, f->head, f->entered);
		fay_widening_apply(&w->widening, joined, old, f->rounds);
	}
	again(w, f, joined);
	drop(w, old);
}

/* Heads of loops within begin anew. */
static void forget_inner(struct sweep *w, uint32_t head)
{
	for (uint32_t at = w->order.of[head] + 1; at < w->order.end[head]; at++) {
		drop(w, w->an->in[w->order.at[at]]);
		w->an->in[w->order.at[at]] = NULL;
	}
}

/* Whether some location's numbers are fewer where the loop is entered and where it comes around than the head's state says. */
static bool may_narrow(const struct sweep *w, const struct frame *f)
{
	const struct fay_state *head = w->an->in[f->head];

	for (uint32_t i = 0; i < head->count; i++) {
		struct fay_scalar s = f->entered->loc[i].s;

		if (!fay_value_numeric(&head->loc[i]) || fay_scalar_equal(&s, &head->loc[i].s))
			continue;
		for (const struct fay_state *b = w->waiting[f->head]; b; b = b->next)
			s = fay_scalar_join(&s, &b->loc[i].s);
		if (!fay_scalar_includes(&s, &head->loc[i].s))
			return true;
	}
	return false;
}

/* The head's state held, but was widened: what comes in is perhaps less. True: another round has begun. */
static bool narrow(struct sweep *w, struct frame *f)
{
	static const struct fay_join_plan plan;
	struct fay_analysis *an = w->an;
	struct fay_state *less;

	f->settled = true;
	if (!f->rounds || !may_narrow(w, f))
		return false;
	less = copy_of(w, f->entered);
	if (less && !fay_state_canonical(less))
		fall_short(w);
	for (struct fay_state *s = w->waiting[f->head]; s && less && !an->fell_short; s = s->next)
		if (!fay_state_join(less, s, &plan))
			fall_short(w);
	if (an->fell_short) {
		drop(w, less);
		return false;
	}
	f->narrowing = true;
	f->wide = an->in[f->head];
	forget_inner(w, f->head);
	again(w, f, less);
	return true;
}

/* Tags at the ways out, of the loop around: where the inner loop does not change the location that they are of. holds() has made slots lie alike. */
static void compose_tags(struct sweep *w, const struct frame *f)
{
	const struct fay_state *back = w->waiting[f->head];
	uint32_t kept = f->mark;

	for (uint32_t k = f->mark; k < w->log_count; k++) {
		struct exit e = w->log[k];

		if (inside(w, e.to, f->head))
			continue;
		w->log[kept++] = e;
		for (uint32_t i = 0; i < e.state->count; i++) {
			struct fay_value *v = &e.state->loc[i];
			const struct fay_value *t = v->origin ? &f->entered->loc[v->origin - 1] : NULL;

			if (!t || !t->origin || (back && !fay_ranking_unmoved(back, v->origin - 1)) ||
			    __builtin_add_overflow(v->dlo, t->dlo, &v->dlo) || __builtin_add_overflow(v->dhi, t->dhi, &v->dhi))
				v->origin = 0;
			else
				v->origin = t->origin;
		}
	}
	w->log_count = kept;
}

static void leave(struct sweep *w, struct frame *f)
{
	struct fay_analysis *an = w->an;
	struct fay_state *back = w->waiting[f->head];

	for (struct fay_state *s = back ? back->next : NULL; s; s = s->next)
		fay_ranking_merge(back, s);
	an->bounds[f->head] = fay_ranking_bound_of(an->in[f->head], back);
	if (an->bounds[f->head] == UINT64_MAX)
		fall_short(w);
	if (w->depth > 1)
		compose_tags(w, f);
	else
		w->log_count = 0;
	fay_pool_drop_list(&w->pool, back);
	w->waiting[f->head] = NULL;
	drop(w, f->entered);
	w->depth--;
	if (!w->depth && !an->keep) {
		drop(w, an->in[f->head]);
		an->in[f->head] = NULL;
		forget_inner(w, f->head);
	}
}

/* The end of a round of the innermost loop. True: it is to be run again. */
static bool finish(struct sweep *w)
{
	struct frame *f = &w->frames[w->depth - 1];
	struct fay_state *wide;

	if (!holds(w, f)) {
		if (!f->narrowing) {
			widen(w, f);
			return true;
		}
		wide = f->wide;
		f->wide = NULL;
		f->narrowing = false;
		drop(w, w->an->in[f->head]);
		again(w, f, wide);
		return true;
	}
	if (!f->settled && narrow(w, f))
		return true;
	drop(w, f->wide);
	leave(w, f);
	return false;
}

/* ---- the whole ---- */

static bool stopped(const struct fay_analysis *an) { return an->fell_short || an->refusal.rule != FAY_RULE_NONE; }

static void sweep(struct sweep *w)
{
	struct fay_analysis *an = w->an;
	const struct fay_graph *g = an->graph;
	uint32_t at = 0;

	fay_widening_init(&w->widening, an->image);
	fay_state_entry(an->current);
	an->current->plain = true;
	arrive(an, w, FAY_NONE, 0, an->current);
	while (!stopped(an)) {
		uint32_t node;
		struct fay_state *s;

		if (w->depth && at == w->order.end[w->frames[w->depth - 1].head]) {
			uint32_t head = w->frames[w->depth - 1].head;

			if (finish(w))
				at = w->order.of[head] + 1;
			continue;
		}
		if (at == g->node_count)
			return;
		node = w->order.at[at++];
		s = gather(w, node);
		if (!s)
			at = w->order.end[node]; /* not reached, nor what it heads */
		else if (g->nodes[node].is_header)
			enter(w, node, s);
		else
			run(w, node, s);
	}
}

static void release(struct sweep *w)
{
	struct fay_analysis *an = w->an;

	for (uint32_t node = 0; w->waiting && node < an->graph->node_count; node++)
		fay_pool_drop_list(&w->pool, w->waiting[node]);
	while (w->depth) {
		struct frame *f = &w->frames[--w->depth];

		drop(w, f->entered);
		drop(w, f->wide);
	}
	fay_pool_deinit(&w->pool);
	free(w->waiting);
	free(w->frames);
	free(w->log);
	fay_order_deinit(&w->order);
}

/* What still waits came to a node that had been left behind: the order was wrong. */
static bool consumed(const struct sweep *w)
{
	for (uint32_t node = 0; node < w->an->graph->node_count; node++)
		if (w->waiting[node])
			return false;
	return true;
}

/* The sum, once all is bounded. What is more than the policy allows may be less when it is looked at thoroughly. */
static void add_up(struct fay_analysis *an)
{
	struct fay_refusal r;

	an->swept = true;
	r = fay_loops_bound(an);
	an->fell_short = r.rule != FAY_RULE_NONE || an->worst_instructions > an->policy->max_instructions;
	an->swept = !an->fell_short;
}

bool fay_sweep(struct fay_analysis *an)
{
	uint32_t n = an->graph->node_count;
	struct fay_probe_facts facts = *an->facts;
	struct sweep *w = calloc(1, sizeof(*w));

	an->reached = calloc(n, 1);
	if (!w || !an->reached || !(w->waiting = calloc(n, sizeof(*w->waiting))) || !fay_order_init(&w->order, an->graph)) {
		an->fell_short = true;
	} else {
		w->an = an;
		w->pool = (struct fay_pool){ .bytes = &an->state_bytes, .most = STATE_BYTES_MAX };
		an->facts->event_fields = an->facts->clobbered_gprs = an->facts->arguments_used = an->facts->helpers = 0;
		an->checking = an->sweeping = true;
		sweep(w);
		an->checking = an->sweeping = false;
		if (!stopped(an) && consumed(w))
			add_up(an);
	}
	if (w && w->an)
		release(w);
	free(w);
	if (an->swept)
		return true;
	fay_fixpoint_release(an);
	*an->facts = facts;
	an->fell_short = false;
	an->obligation_count = 0;
	an->deepest = 0;
	if (an->moves)
		memset(an->moves, 0, n * sizeof(*an->moves));
	return false;
}
