/* SPDX-License-Identifier: MIT */
/*
 * How the fixpoint finds its states. Ascending: a work list in reverse postorder; states are joined
 * where paths meet and widened, with thresholds taken from the code's own constants, at the heads
 * of loops. Descending: two passes that recompute the states from their predecessors. None of this
 * is trusted.
 */
#include "fixpoint_parts.h"

#include <stdlib.h>
#include <string.h>

#include "verifier/prover/state/state.h"

#define STATE_BYTES_MAX ((size_t)1 << 30) /* all states of one probe */
#define MAX_VISITS 400u                   /* of one node; more is LIM-RESOURCE */
#define PATIENCE 60u /* visits of one node in which relations may become more */

/* A stored copy with canonical names. */
static struct fay_state *store(struct fay_analysis *an, const struct fay_state *s)
{
	struct fay_state *copy;

	an->state_bytes += fay_state_size(s->count);
	copy = an->state_bytes > STATE_BYTES_MAX ? NULL : fay_state_create(s->count);
	if (copy) {
		fay_state_copy(copy, s);
		if (fay_state_canonical(copy))
			return copy;
		free(copy);
	}
	fay_analysis_fail(an, out_of_memory(an));
	return NULL;
}

static bool join(const struct fay_analysis *an, uint32_t node, struct fay_state *into,
		 struct fay_state *s, bool settle)
{
	struct fay_join_plan plan = { .settle = settle,
				      .guess_fills = !settle && an->graph->nodes[node].is_header };
	uint32_t first = 0;

	if (an->template_count && an->graph->nodes[node].is_header) {
		while (first < an->template_count && an->templates[first].node < node)
			first++;
		plan.templates = an->templates + first;
		while (first + plan.template_count < an->template_count &&
		       an->templates[first + plan.template_count].node == node)
			plan.template_count++;
	}
	return fay_state_join(into, s, &plan);
}

/* Joins s into *slot. */
static void gather(struct fay_analysis *an, uint32_t node, struct fay_state **slot,
		   struct fay_state *s)
{
	if (!*slot)
		*slot = store(an, s);
	else if (fay_fixpoint_same_depth(an, node, *slot, s) && !join(an, node, *slot, s, false))
		fay_analysis_fail(an, out_of_memory(an));
}

/* ---- ascending ---- */

struct ascent {
	uint8_t *pending;
	uint32_t next;         /* no pending node below */
	struct fay_state *old; /* scratch */
	bool widened;
	bool related;  /* some state relates values */
	bool settling; /* the second time: what is related can only become less */
	/* per head: changes over back edges since the last one from outside the loop, saturating */
	uint8_t *rounds;
	uint32_t header; /* whose thresholds these are */
	struct fay_thresholds thresholds;
};

/*
 * What comes from outside the loop is only joined: loops around this one see to it that it settles.
 * What comes around is joined at first, then widened to the loop's own numbers, and if it still
 * climbs, coarsely.
 */
#define ROUNDS_JOINED 2u
#define ROUNDS_FINE 24u

static void widen(struct fay_analysis *an, struct ascent *a, uint32_t header)
{
	if (a->rounds[header] < UINT8_MAX)
		a->rounds[header]++;
	if (a->rounds[header] <= ROUNDS_JOINED)
		return;
	if (a->header != header) {
		fay_thresholds_common(&a->thresholds, an->image);
		fay_thresholds_add_loop(&a->thresholds, an, header, a->old);
	}
	a->header = header;
	fay_state_widen(an->in[header], a->old,
			a->rounds[header] <= ROUNDS_FINE ? &a->thresholds : &fay_thresholds_coarse,
			a->rounds[header]);
	a->widened = true;
}

static void ascend_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
			struct fay_state *s)
{
	struct ascent *a = context;

	if (!an->in[to]) {
		an->in[to] = store(an, s);
	} else {
		if (!fay_fixpoint_same_depth(an, to, an->in[to], s) ||
		    fay_state_includes(an->in[to], s))
			return;
		fay_state_copy(a->old, an->in[to]);
		if (!join(an, to, an->in[to], s, a->settling || an->visits[to] > PATIENCE)) {
			fay_analysis_fail(an, out_of_memory(an));
			return;
		}
		if (++an->visits[to] > MAX_VISITS)
			fay_analysis_fail(an, fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE,
							 fay_node_address(an, to),
							 "the analysis does not converge here"));
		if (to <= from)
			widen(an, a, to);
		else if (an->graph->nodes[to].is_header && an->visits[to] <= 2 * PATIENCE)
			a->rounds[to] = 0;
		if (an->graph->nodes[to].is_header && !a->settling && an->visits[to] <= PATIENCE)
			fay_relations_reduce(an->in[to]);
		a->related |= an->in[to]->relation_count + an->in[to]->fill_count > 0;
	}
	a->pending[to] = 1;
	if (to < a->next)
		a->next = to;
}

static void climb(struct fay_analysis *an, struct ascent *a)
{
	unsigned steps = 0;

	while (an->refusal.rule == FAY_RULE_NONE && a->next < an->graph->node_count) {
		uint32_t node = a->next++;

		if (!a->pending[node])
			continue;
		a->pending[node] = 0;
		if (an->in[node])
			fay_node_run(an, node, an->in[node], ascend_edge, a);
		if (an->deadline && !(++steps & 63) && fay_monotonic_ns() > an->deadline)
			fay_analysis_fail(an, fay_refuse(an->arena, FAY_RULE_LIM_TIME,
							 fay_node_address(an, node),
							 "time ran out in the analysis"));
	}
}

bool fay_fixpoint_ascend(struct fay_analysis *an)
{
	struct ascent a = { .pending = calloc(an->graph->node_count, 1),
			    .rounds = calloc(an->graph->node_count, 1),
			    .old = fay_state_create(FAY_MAX_LOCATIONS),
			    .header = FAY_NONE };

	if (!a.pending || !a.rounds || !a.old) {
		fay_analysis_fail(an, out_of_memory(an));
	} else {
		fay_state_entry(an->current);
		an->in[0] = store(an, an->current);
		a.pending[0] = 1;
	}
	climb(an, &a);
	/* Joins may have related more than what was joined before shows of itself; joins that only
	 * lose come to an end that is inductive. */
	if (an->refusal.rule == FAY_RULE_NONE && an->graph->loop_count && a.related) {
		a.settling = true;
		a.next = 0;
		memset(a.pending, 1, an->graph->node_count);
		climb(an, &a);
	}
	free(a.pending);
	free(a.rounds);
	free(a.old);
	return a.widened;
}

/* ---- descending ---- */

/*
 * A pass recomputes the states from those of the pass before, of which most stay what they are: a
 * node none of whose predecessors changed keeps its state and is not run. `next[n] == old[n]` says
 * so. States of the ascent (an->in) are kept until the end and shared.
 */
struct descent {
	struct fay_state **old, **next;      /* of the pass before, of this one */
	struct fay_state **back, **new_back; /* joined over the back edges to a node */
	uint8_t *run;                        /* this pass has handed on the node's edges forward */
	/* an edge to another node is not wanted; FAY_NONE: all are */
	uint32_t only;
	bool changed;
};

static void descend_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
			 struct fay_state *s)
{
	struct descent *d = context;

	if (to <= from)
		gather(an, to, &d->new_back[to], s);
	else if (d->only == FAY_NONE || d->only == to)
		gather(an, to, &d->next[to], s);
}

/* Only the edges back, or only that to `only`. */
static void back_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
		      struct fay_state *s)
{
	if (to <= from)
		descend_edge(an, context, from, to, s);
}

static void forward_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
			 struct fay_state *s)
{
	if (to > from)
		descend_edge(an, context, from, to, s);
}

static bool has_back_edge(const struct fay_analysis *an, uint32_t node)
{
	const struct fay_node *n = &an->graph->nodes[node];

	for (uint32_t k = 0; k < fay_node_fanout(n); k++)
		if (fay_node_succ(n, k) <= node) /* FAY_NONE is greater */
			return true;
	return false;
}

/* Frees those of `states` that are not the ascent's. */
static void drop_own(struct fay_analysis *an, struct fay_state **states)
{
	for (uint32_t i = 0; i < an->graph->node_count; i++) {
		if (states[i] != an->in[i])
			fay_analysis_drop(an, states[i]);
		states[i] = NULL;
	}
}

/* Whether a predecessor's state is new, or the node is a head, whose back edges may bring something
 * new. */
static bool may_change(const struct fay_analysis *an, const struct descent *d, uint32_t node)
{
	const struct fay_node *n = &an->graph->nodes[node];

	for (uint32_t i = 0; i < n->pred_count; i++) {
		uint32_t from = an->graph->preds[n->first_pred + i];

		if (from >= node || d->next[from] != d->old[from])
			return true;
	}
	return false;
}

/* The node's state from its predecessors; those that have run left their part in d->next already.
 * */
static void recompute(struct fay_analysis *an, struct descent *d, uint32_t node)
{
	const struct fay_node *n = &an->graph->nodes[node];

	if (node == 0) {
		fay_state_entry(an->current);
		gather(an, 0, &d->next[0], an->current);
	}
	for (uint32_t i = 0; i < n->pred_count && an->refusal.rule == FAY_RULE_NONE; i++) {
		uint32_t from = an->graph->preds[n->first_pred + i];

		if (from >= node || d->run[from] || !d->next[from] ||
		    (i && an->graph->preds[n->first_pred + i - 1] == from))
			continue;
		d->only = node;
		fay_node_run(an, from, d->next[from], forward_edge, d);
		d->only = FAY_NONE;
	}
	if (d->back[node] && d->next[node] && an->refusal.rule == FAY_RULE_NONE) {
		fay_state_copy(an->branch, d->back[node]);
		gather(an, node, &d->next[node], an->branch);
	}
}

static void descend_node(struct fay_analysis *an, struct descent *d, uint32_t node)
{
	bool same = !may_change(an, d, node);

	if (!same) {
		recompute(an, d, node);
		same = d->next[node] && d->old[node] &&
		       fay_state_equal(d->next[node], d->old[node]);
	}
	if (same) {
		fay_analysis_drop(an, d->next[node]);
		d->next[node] = d->old[node];
		if (d->next[node] && has_back_edge(an, node))
			fay_node_run(an, node, d->next[node], back_edge, d);
		return;
	}
	d->changed = true;
	d->run[node] = 1;
	if (d->next[node] && an->refusal.rule == FAY_RULE_NONE)
		fay_node_run(an, node, d->next[node], descend_edge, d);
}

/* One pass: d->next from d->old and d->back, leaving d->new_back. */
static void descend_once(struct fay_analysis *an, struct descent *d)
{
	memset(d->run, 0, an->graph->node_count);
	d->changed = false;
	for (uint32_t node = 0; node < an->graph->node_count && an->refusal.rule == FAY_RULE_NONE;
	     node++) {
		descend_node(an, d, node);
		if (an->deadline && !(node & 63) && fay_monotonic_ns() > an->deadline)
			fay_analysis_fail(an, fay_refuse(an->arena, FAY_RULE_LIM_TIME,
							 fay_node_address(an, node),
							 "time ran out in the analysis"));
	}
}

/* Leaves the result in d->next, which shares states with an->in. */
static void descend(struct fay_analysis *an, struct descent *d)
{
	uint32_t n = an->graph->node_count;

	for (uint32_t node = 0; node < n && an->refusal.rule == FAY_RULE_NONE; node++)
		if (an->in[node] && has_back_edge(an, node))
			fay_node_run(an, node, an->in[node], back_edge, d);
	memcpy(d->next, an->in, n * sizeof(*d->next));
	d->changed = true;
	for (int pass = 0; pass < 2 && d->changed && an->refusal.rule == FAY_RULE_NONE; pass++) {
		struct fay_state **t = d->back;

		d->back = d->new_back;
		d->new_back = t;
		fay_analysis_drop_all(an, d->new_back);
		t = d->old;
		d->old = d->next;
		d->next = t;
		descend_once(an, d);
		for (uint32_t node = 0; node < n; node++) {
			if (d->old[node] != an->in[node] && d->old[node] != d->next[node])
				fay_analysis_drop(an, d->old[node]);
			d->old[node] = NULL;
		}
	}
}

static void descent_deinit(struct descent *d)
{
	free(d->old);
	free(d->next);
	free(d->back);
	free(d->new_back);
	free(d->run);
}

bool fay_fixpoint_narrow(struct fay_analysis *an)
{
	uint32_t n = an->graph->node_count;
	struct descent d = { .old = calloc(n, sizeof(struct fay_state *)),
			     .next = calloc(n, sizeof(struct fay_state *)),
			     .back = calloc(n, sizeof(struct fay_state *)),
			     .new_back = calloc(n, sizeof(struct fay_state *)),
			     .run = calloc(n, 1),
			     .only = FAY_NONE };
	bool inductive = false;

	if (!d.old || !d.next || !d.back || !d.new_back || !d.run) {
		fay_analysis_fail(an, out_of_memory(an));
		descent_deinit(&d);
		return false;
	}
	descend(an, &d);
	fay_analysis_drop_all(an, d.back);
	fay_analysis_drop_all(an, d.new_back);
	if (an->refusal.rule == FAY_RULE_NONE) {
		struct fay_state **wide = an->in;

		an->in = d.next;
		inductive = fay_fixpoint_check(an);
		d.next = wide;
		if (!inductive) {
			d.next = an->in;
			an->in = wide;
		}
	}
	/* What is in d.next and not shared goes. */
	drop_own(an, d.next);
	descent_deinit(&d);
	return inductive;
}
