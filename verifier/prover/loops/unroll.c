/* SPDX-License-Identifier: MIT */
/*
 * Bounds of loops that no ranking shows, by following the loop round by round: counters that wrap
 * until they meet a number, numbers that are shifted to zero, a key that is searched for eight
 * places onward.
 *
 * S(0) describes every state in which the loop's head is entered from outside; S(k + 1) every state
 * in which it is reached again from S(k), by one run of the body. If S(n) is empty the head is
 * visited at most n times in one stay. The states start from the proved invariant of the blocks
 * that lead into the loop, and go through the same transfer functions as the last pass of the
 * fixpoint, so each S(k) describes what its name says; heads of loops within take their proved
 * invariant. Joins are believed only where the inclusion test shows them to include both sides.
 *
 * Limits: FAY_UNROLL_ROUNDS rounds a loop, FAY_UNROLL_RUNS runs of a block a probe,
 * FAY_UNROLL_BYTES of states at a time. A round that ends with all that it began with ends the
 * attempt: the next ones would, too.
 */
#include "loops.h"

#include <stdlib.h>

static const struct fay_join_plan plain_join;

static bool give_up(struct fay_unroll *u)
{
	u->failed = true;
	return false;
}

static void drop(struct fay_unroll *u, struct fay_state *s)
{
	if (s)
		u->bytes -= fay_state_size(s->count);
	free(s);
}

/* A copy with canonical names. */
static struct fay_state *keep(struct fay_unroll *u, const struct fay_state *s)
{
	size_t size = fay_state_size(s->count);
	struct fay_state *copy =
		u->bytes + size > FAY_UNROLL_BYTES ? NULL : fay_state_create(s->count);

	if (copy) {
		u->bytes += size;
		fay_state_copy(copy, s);
		if (fay_state_canonical(copy))
			return copy;
		drop(u, copy);
	}
	give_up(u);
	return NULL;
}

/* Whether `outer` includes *s, which stays as it is. */
static bool includes(struct fay_unroll *u, const struct fay_state *outer, const struct fay_state *s)
{
	fay_state_copy(u->scratch, s);
	return fay_state_includes(outer, u->scratch);
}

/* *slot then describes what it did and what s describes. */
static bool merge(struct fay_unroll *u, struct fay_state **slot, const struct fay_state *s)
{
	struct fay_state *old;
	bool ok;

	if (!*slot)
		return (*slot = keep(u, s)) != NULL;
	if ((*slot)->count != s->count)
		return give_up(u);
	if (includes(u, *slot, s))
		return true;
	old = keep(u, *slot);
	if (!old)
		return false;
	fay_state_copy(u->scratch, s);
	ok = fay_state_join(*slot, u->scratch, &plain_join) && includes(u, *slot, s) &&
	     fay_state_includes(*slot, old);
	drop(u, old);
	return ok || give_up(u);
}

/* An edge into the loop from outside. */
static void enter(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
		  struct fay_state *s)
{
	struct fay_unroll *u = context;

	(void)an;
	(void)from;
	if (to == u->header && !u->failed)
		merge(u, &u->again, s);
}

/* An edge of the body. Those back to a head within lead to what its invariant describes already; a
 * head that has none is never reached. */
static void follow(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
		   struct fay_state *s)
{
	struct fay_unroll *u = context;
	const struct fay_graph *g = an->graph;

	if (u->failed)
		return;
	if (to == u->header)
		merge(u, &u->again, s);
	else if (to > from && to <= g->nodes[u->header].last &&
		 fay_graph_in_loop(g, to, u->header) && (!g->nodes[to].is_header || an->in[to]))
		merge(u, &u->at[to], g->nodes[to].is_header ? an->in[to] : s);
}

static bool run(struct fay_unroll *u, uint32_t node, const struct fay_state *s,
		fay_edge_function *edge)
{
	if (++u->runs > FAY_UNROLL_RUNS ||
	    (u->an->deadline && fay_monotonic_ns() > u->an->deadline))
		return give_up(u);
	/* What S(k) knows too little of to allow an instruction need not be a path that is never
	 * taken. */
	if (!fay_node_run(u->an, node, s, edge, u))
		return give_up(u);
	return !u->failed;
}

/* S(0) from the invariant of what leads into the loop; NULL: it is never entered, or nothing is
 * known. */
static struct fay_state *entered_by_edges(struct fay_unroll *u)
{
	struct fay_analysis *an = u->an;
	const struct fay_node *head = &an->graph->nodes[u->header];
	struct fay_state *s;

	u->again = NULL;
	if (u->header == 0) {
		fay_state_entry(an->current);
		enter(an, u, 0, 0, an->current);
	}
	for (uint32_t i = 0; i < head->pred_count && !u->failed; i++) {
		uint32_t from = an->graph->preds[head->first_pred + i];

		if (from < u->header && an->in[from])
			run(u, from, an->in[from], enter);
	}
	s = u->again;
	u->again = NULL;
	return s;
}

/* S(k + 1) from S(k), which is freed; NULL: the head is not reached again, or u->failed. */
static struct fay_state *next_round(struct fay_unroll *u, struct fay_state *s)
{
	uint32_t last = u->an->graph->nodes[u->header].last;
	struct fay_state *again;

	u->runs += (last - u->header) / 64;
	run(u, u->header, s, follow);
	for (uint32_t node = u->header + 1; node <= last; node++) {
		if (u->at[node] && !u->failed)
			run(u, node, u->at[node], follow);
		drop(u, u->at[node]);
		u->at[node] = NULL;
	}
	again = u->again;
	u->again = NULL;
	if (again && !u->failed && includes(u, again, s))
		give_up(u);
	drop(u, s);
	return again;
}

uint64_t fay_unroll_bound(struct fay_unroll *u, uint32_t header, const struct fay_state *entered)
{
	struct fay_state *s;
	uint64_t visits = 0;

	if (u->runs > FAY_UNROLL_RUNS || !u->at || !u->scratch)
		return UINT64_MAX;
	u->header = header;
	u->failed = false;
	s = entered ? keep(u, entered) : entered_by_edges(u);
	while (s && !u->failed && visits < FAY_UNROLL_ROUNDS) {
		visits++;
		s = next_round(u, s);
	}
	if (s)
		give_up(u);
	drop(u, s);
	return u->failed || !visits ? UINT64_MAX : visits;
}

void fay_unroll_init(struct fay_unroll *u, struct fay_analysis *an)
{
	*u = (struct fay_unroll){ .an = an,
				  .at = calloc(an->graph->node_count, sizeof(struct fay_state *)),
				  .scratch = fay_state_create(FAY_MAX_LOCATIONS) };
}

void fay_unroll_deinit(struct fay_unroll *u)
{
	free(u->at);
	free(u->scratch);
}
