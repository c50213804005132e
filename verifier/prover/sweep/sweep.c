/* SPDX-License-Identifier: MIT */
/*
 * The first attempt at a proof: each block outside loops is run once, and checked as it is run;
 * each innermost loop is run until its head's state holds, which mostly takes two or three rounds,
 * of which the last is the check.
 *
 * The nodes are visited in a weak topological order (order.c), so all that leads to a node from
 * outside its loop has run before it. What an edge brings waits at its target. A node's state is
 * what waits there, or if there is more, the join, and then each that waits is checked to be
 * included in it. A loop's head keeps its state; at the end of a round, what came over the back
 * edges either is included in it, or is joined and widened into it, and the round was in vain: its
 * facts are taken back, what left the loop is thrown away, and the loop is run again. So in what
 * remains, each block was run, with an->checking, from a state that includes all that its edges
 * bring: the invariant and its check in one (docs/verifier.md). Joins, widening and the order are
 * not trusted.
 *
 * Obligations left open count in the last round of a loop only, since the state may become smaller.
 * If they are left open then, or the loop has no bound, the outermost loop around is run anew with
 * relations and ranges of arrays, which its states then have; what leaves it goes on without. If
 * something is left open behind the loops, or the sum is more than the policy allows, the whole
 * probe is run once more with relations.
 *
 * Ranking comes along. At the beginning of a round each location of the head is tagged with itself
 * (struct fay_value: origin), and what the back edges bring says how far each has moved. The tags
 * of the loop around are put together from those at the inner loop's entry, for the locations that
 * the inner loop does not change. Where that gives no bound, the loop is followed round by round
 * (unroll.c).
 *
 * If that does not do, nothing was decided, and the thorough way (fixpoint.c) begins from the
 * start, with templates and the solver. So every limit here costs time only. States are released as
 * soon as nothing waits for them.
 */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

#include "sweep_parts.h"
#include "verifier/prover/state/state.h"

#define RUNS_PER_NODE 48u
#define STATE_BYTES_MAX ((size_t)256 << 20)

bool fay_sweep_fall_short(struct fay_sweep *w)
{
	w->an->fell_short = true;
	return false;
}

bool fay_sweep_inside(const struct fay_sweep *w, uint32_t node, uint32_t head)
{
	return w->order.of[node] >= w->order.of[head] && w->order.of[node] < w->order.end[head];
}

struct fay_state *fay_sweep_copy(struct fay_sweep *w, const struct fay_state *s)
{
	struct fay_state *copy = fay_pool_copy(&w->pool, s);

	if (!copy)
		fay_sweep_fall_short(w);
	return copy;
}

void fay_sweep_drop(struct fay_sweep *w, struct fay_state *s)
{
	fay_pool_drop(&w->pool, s);
}

bool fay_sweep_grow(void **array, uint32_t *capacity, uint32_t count, size_t size)
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

void fay_sweep_deliver(struct fay_sweep *w, uint32_t to, struct fay_state *s)
{
	s->next = w->waiting[to];
	w->waiting[to] = s;
	if (!w->depth || fay_sweep_inside(w, to, w->frames[w->depth - 1].head))
		return;
	if (fay_sweep_grow((void **)&w->log, &w->log_capacity, w->log_count, sizeof(*w->log)))
		w->log[w->log_count++] = (struct fay_sweep_exit){ .to = to, .state = s };
	else
		fay_sweep_fall_short(w);
}

/* Whether s, the last state that this node brings, is all that comes to the next one in the order:
 * it is run from there, not copied. */
static bool carries(const struct fay_sweep *w, uint32_t to, const struct fay_state *s)
{
	const struct fay_node *n = &w->an->graph->nodes[to];

	return s == w->an->current && to == w->next && n->pred_count == 1 && !n->is_header &&
	       (!w->depth || fay_sweep_inside(w, to, w->frames[w->depth - 1].head));
}

static void arrive(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
		   struct fay_state *s)
{
	struct fay_sweep *w = context;
	struct fay_state *copy;

	/* A jump through a table may have one target many times. */
	if (an->fell_short ||
	    (w->waiting[to] && w->waiting[to]->from == from && an->graph->nodes[from].table))
		return;
	if (w->live)
		fay_live_forget(s, w->live[to]);
	if (carries(w, to, s)) {
		w->carried = true;
		return;
	}
	copy = fay_sweep_copy(w, s);
	if (!copy)
		return;
	copy->from = from;
	fay_sweep_deliver(w, to, copy);
}

/* Makes one state of all that wait for `node`, and checks that it includes each. NULL: none, or it
 * fell short. */
static struct fay_state *gather(struct fay_sweep *w, uint32_t node)
{
	static const struct fay_join_plan plan;
	struct fay_state *list = w->waiting[node], *joined;

	if (w->carried) {
		w->carried = false;
		if (node == w->next && !list)
			return w->an->keep ? fay_sweep_copy(w, w->an->current) : w->an->current;
		fay_sweep_fall_short(w);
		return NULL;
	}
	w->waiting[node] = NULL;
	if (!list || !list->next)
		return list;
	joined = fay_sweep_copy(w, list);
	for (struct fay_state *s = list->next; s && joined && !w->an->fell_short; s = s->next)
		if (s->count != joined->count || !fay_state_join(joined, s, &plan))
			fay_sweep_fall_short(w);
	for (struct fay_state *s = list; s && joined && !w->an->fell_short && !joined->plain;
	     s = s->next)
		fay_relations_keep_shown(joined, s);
	for (struct fay_state *s = list; s && joined && !w->an->fell_short; s = s->next)
		if (!fay_state_includes(joined, s))
			fay_sweep_fall_short(w);
	fay_pool_drop_list(&w->pool, list);
	if (!w->an->fell_short)
		return joined;
	fay_sweep_drop(w, joined);
	return NULL;
}

static void keep(struct fay_sweep *w, uint32_t node, struct fay_state *s)
{
	struct fay_analysis *an = w->an;

	if (an->reached)
		an->reached[node] = 1;
	if (an->in[node] == s)
		return;
	if (!an->keep) {
		if (s != an->current)
			fay_sweep_drop(w, s);
		return;
	}
	if (!fay_state_canonical(s)) /* as all that asks of stored states expects */
		fay_sweep_fall_short(w);
	fay_sweep_drop(w, an->in[node]);
	an->in[node] = s;
}

void fay_sweep_leave_open(struct fay_sweep *w)
{
	w->an->open = false;
	if (w->depth)
		w->frames[w->depth - 1].open = true;
	else
		fay_sweep_fall_short(w);
}

void fay_sweep_run(struct fay_sweep *w, uint32_t node, struct fay_state *s)
{
	struct fay_analysis *an = w->an;

	if (++w->runs > (uint64_t)RUNS_PER_NODE * an->graph->node_count + 256)
		fay_sweep_fall_short(w);
	if (an->moves)
		an->moves[node] = 0;
	w->next = w->order.of[node] + 1 < an->graph->node_count ? w->order.at[w->order.of[node] + 1]
								: FAY_NONE;
	fay_node_run(an, node, s, arrive, w);
	keep(w, node, s);
	if (an->open)
		fay_sweep_leave_open(w);
}

static bool stopped(const struct fay_analysis *an)
{
	return an->fell_short || an->refusal.rule != FAY_RULE_NONE;
}

static void sweep(struct fay_sweep *w)
{
	struct fay_analysis *an = w->an;
	const struct fay_graph *g = an->graph;
	uint32_t at = 0;

	fay_widening_init(&w->widening, an->image);
	fay_state_entry(an->current);
	an->current->plain = !w->related;
	arrive(an, w, FAY_NONE, 0, an->current);
	while (!stopped(an)) {
		uint32_t node;
		struct fay_state *s;

		if (w->depth && at == w->order.end[w->frames[w->depth - 1].head]) {
			uint32_t head = fay_sweep_finish(w);

			if (head != FAY_NONE)
				at = w->order.of[head] + 1;
			continue;
		}
		if (at == g->node_count)
			return;
		node = w->order.at[at++];
		s = gather(w, node);
		if (!s)
			at = w->order.end[node]; /* not reached, nor what it heads */
		else if (!g->nodes[node].is_header)
			fay_sweep_run(w, node, s);
		else if (!fay_sweep_enter(w, node, s))
			at = w->order.end[node];
	}
}

static void release(struct fay_sweep *w)
{
	struct fay_analysis *an = w->an;

	for (uint32_t node = 0; w->waiting && w->results && node < an->graph->node_count; node++) {
		fay_pool_drop_list(&w->pool, w->waiting[node]);
		fay_sweep_result_drop(w, node);
	}
	while (w->depth) {
		struct fay_sweep_frame *f = &w->frames[--w->depth];

		fay_sweep_drop(w, f->entered);
		fay_sweep_drop(w, f->wide);
	}
	fay_pool_deinit(&w->pool);
	if (w->unroll.an)
		fay_unroll_deinit(&w->unroll);
	free(w->waiting);
	free(w->results);
	free(w->live);
	free(w->frames);
	free(w->log);
	fay_order_deinit(&w->order);
}

/* What still waits came to a node that had been left behind: the order was wrong. */
static bool consumed(const struct fay_sweep *w)
{
	for (uint32_t node = 0; node < w->an->graph->node_count; node++)
		if (w->waiting[node])
			return false;
	return true;
}

/* The sum, once all is bounded. What is more than the policy allows may be less when it is looked
 * at thoroughly. */
static void add_up(struct fay_analysis *an)
{
	struct fay_refusal r;

	an->swept = true;
	r = fay_loops_bound(an);
	an->fell_short =
		r.rule != FAY_RULE_NONE || an->worst_instructions > an->policy->max_instructions;
	an->swept = !an->fell_short;
	if (r.rule == FAY_RULE_NONE && an->fell_short)
		an->too_many = an->worst_instructions;
}

/* The whole probe, once. False: nothing was decided, and *an is as it was; *again: perhaps with
 * relations everywhere. */
static bool attempt(struct fay_analysis *an, bool related, bool *again)
{
	uint32_t n = an->graph->node_count;
	struct fay_probe_facts facts = *an->facts;
	struct fay_sweep *w = calloc(1, sizeof(*w));

	an->reached = calloc(n, 1);
	*again = false;
	if (!w || !an->reached || !(w->waiting = calloc(n, sizeof(*w->waiting))) ||
	    !(w->results = calloc(n, sizeof(*w->results))) ||
	    !fay_order_init(&w->order, an->graph)) {
		an->fell_short = true;
	} else {
		w->an = an;
		w->next = FAY_NONE;
		w->live = fay_live_find(an);
		w->related = related;
		w->pool = (struct fay_pool){ .bytes = &an->state_bytes, .most = STATE_BYTES_MAX };
		an->facts->event_fields = an->facts->clobbered_gprs = an->facts->arguments_used =
			an->facts->helpers = 0;
		an->checking = an->sweeping = true;
		sweep(w);
		an->checking = an->sweeping = false;
		*again = !w->depth;
		if (!stopped(an) && consumed(w))
			add_up(an);
	}
	if (w && w->an)
		release(w);
	free(w);
	if (an->swept)
		return true;
	fay_analysis_release(an);
	*an->facts = facts;
	an->fell_short = an->open = false;
	an->obligation_count = 0;
	an->deepest = 0;
	if (an->moves)
		memset(an->moves, 0, n * sizeof(*an->moves));
	return false;
}

bool fay_sweep(struct fay_analysis *an)
{
	bool again;

	if (attempt(an, an->related, &again))
		return true;
	return again && !an->related && an->graph->loop_count &&
	       an->refusal.rule == FAY_RULE_NONE && attempt(an, true, &again);
}
