/* SPDX-License-Identifier: MIT */
/*
 * The fixpoint over the graph of one probe, and the check that it is one.
 *
 * Ascending: a work list in reverse postorder; states are joined where paths meet and widened, with thresholds taken from the code's own
 * constants, at the heads of loops. Descending: two passes that recompute every state from its predecessors. None of this is trusted: the
 * last pass runs every block from its state and checks that what comes out is included in the successors' states, and only then
 * raises the obligations. So the states are an inductive invariant however they were found.
 */
#include "fixpoint.h"

#include <stdlib.h>
#include <string.h>

#define MAX_VISITS 400u /* of one node; more is LIM-RESOURCE */

static struct fay_refusal out_of_memory(struct fay_analysis *an)
{
	return fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory, or more than the verifier's share");
}

static uint64_t node_address(const struct fay_analysis *an, uint32_t node)
{
	return an->cfg->insns[an->cfg->blocks[an->graph->nodes[node].block].first].address;
}

static const struct fay_insn *last_insn(const struct fay_analysis *an, uint32_t node)
{
	const struct fay_block *block = &an->cfg->blocks[an->graph->nodes[node].block];

	return &an->cfg->insns[block->first + block->count - 1];
}

static void fail(struct fay_analysis *an, struct fay_refusal r)
{
	if (an->refusal.rule == FAY_RULE_NONE)
		an->refusal = r;
}

/* A stored copy with canonical names. */
static struct fay_state *store(struct fay_analysis *an, const struct fay_state *s)
{
	struct fay_state *copy;

	an->state_bytes += fay_state_size(s->count);
	copy = an->state_bytes > FAY_STATE_BYTES_MAX ? NULL : fay_state_create(s->count);
	if (copy) {
		fay_state_copy(copy, s);
		if (fay_state_canonical(copy))
			return copy;
		free(copy);
	}
	fail(an, out_of_memory(an));
	return NULL;
}

static void drop(struct fay_analysis *an, struct fay_state *s)
{
	if (s)
		an->state_bytes -= fay_state_size(s->count);
	free(s);
}

static bool same_depth(struct fay_analysis *an, uint32_t node, const struct fay_state *a, const struct fay_state *b)
{
	if (a->count == b->count)
		return true;
	fail(an, fay_refuse(an->arena, FAY_RULE_STK_POINTER, node_address(an, node),
			    "the stack pointer here is %lld or %lld bytes below the return address, depending on the path",
			    (long long)fay_state_depth(a), (long long)fay_state_depth(b)));
	return false;
}

/* Joins s into *slot. */
static void gather(struct fay_analysis *an, uint32_t node, struct fay_state **slot, struct fay_state *s)
{
	if (!*slot)
		*slot = store(an, s);
	else if (same_depth(an, node, *slot, s) && !fay_state_join(*slot, s))
		fail(an, out_of_memory(an));
}

typedef void edge_function(struct fay_analysis *an, void *context, uint32_t from, uint32_t to, struct fay_state *s);

/* Runs `node` from `in` and hands each feasible edge to `edge`. */
static void run_node(struct fay_analysis *an, uint32_t node, const struct fay_state *in, edge_function *edge, void *context)
{
	const struct fay_node *n = &an->graph->nodes[node];
	const struct fay_insn *last = last_insn(an, node);

	fay_state_copy(an->current, in);
	if (!fay_transfer_block(an, node))
		return;
	if (last->op == OP_JCC) {
		fay_state_copy(an->branch, an->current);
		if (fay_transfer_assume(an, an->branch, (enum fay_cc)last->cc, true))
			edge(an, context, node, n->succ[0], an->branch);
		if (fay_transfer_assume(an, an->current, (enum fay_cc)last->cc, false))
			edge(an, context, node, n->succ[1], an->current);
	} else if (n->succ[0] != FAY_NONE) {
		edge(an, context, node, n->succ[0], an->current);
	}
}

/* ---- ascending ---- */

struct ascent {
	uint8_t *pending;
	uint32_t next; /* no pending node below */
	struct fay_state *old; /* scratch */
};

static void ascend_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to, struct fay_state *s)
{
	struct ascent *a = context;

	(void)from;
	if (!an->in[to]) {
		an->in[to] = store(an, s);
	} else {
		if (!same_depth(an, to, an->in[to], s) || fay_state_includes(an->in[to], s))
			return;
		fay_state_copy(a->old, an->in[to]);
		if (!fay_state_join(an->in[to], s)) {
			fail(an, out_of_memory(an));
			return;
		}
		if (++an->visits[to] > MAX_VISITS)
			fail(an, fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, node_address(an, to), "the analysis does not settle here"));
		if (an->graph->nodes[to].is_header && an->visits[to] > 2)
			fay_state_widen(an->in[to], a->old, &an->thresholds, an->visits[to]);
	}
	a->pending[to] = 1;
	if (to < a->next)
		a->next = to;
}

static void ascend(struct fay_analysis *an)
{
	struct ascent a = { .pending = calloc(an->graph->node_count, 1), .old = fay_state_create(FAY_MAX_LOCATIONS) };
	unsigned steps = 0;

	if (!a.pending || !a.old) {
		fail(an, out_of_memory(an));
	} else {
		fay_state_entry(an->current);
		an->in[0] = store(an, an->current);
		a.pending[0] = 1;
	}
	while (an->refusal.rule == FAY_RULE_NONE && a.next < an->graph->node_count) {
		uint32_t node = a.next++;

		if (!a.pending[node])
			continue;
		a.pending[node] = 0;
		run_node(an, node, an->in[node], ascend_edge, &a);
		if (an->deadline && !(++steps & 63) && fay_monotonic_ns() > an->deadline)
			fail(an, fay_refuse(an->arena, FAY_RULE_LIM_TIME, node_address(an, node), "time ran out in the analysis"));
	}
	free(a.pending);
	free(a.old);
}

/* ---- descending ---- */

struct descent {
	struct fay_state **next, **back, **new_back;
};

static void collect_back(struct fay_analysis *an, void *context, uint32_t from, uint32_t to, struct fay_state *s)
{
	struct descent *d = context;

	if (to <= from)
		gather(an, to, &d->new_back[to], s);
}

static void descend_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to, struct fay_state *s)
{
	struct descent *d = context;

	gather(an, to, to <= from ? &d->new_back[to] : &d->next[to], s);
}

static void drop_all(struct fay_analysis *an, struct fay_state **states)
{
	for (uint32_t i = 0; i < an->graph->node_count; i++) {
		drop(an, states[i]);
		states[i] = NULL;
	}
}

/* One pass: d->next from the entry and d->back, leaving d->new_back. */
static void descend_once(struct fay_analysis *an, struct descent *d)
{
	fay_state_entry(an->current);
	d->next[0] = store(an, an->current);
	for (uint32_t node = 0; node < an->graph->node_count && an->refusal.rule == FAY_RULE_NONE; node++) {
		if (d->back[node] && d->next[node]) {
			fay_state_copy(an->branch, d->back[node]);
			gather(an, node, &d->next[node], an->branch);
		}
		if (d->next[node] && an->refusal.rule == FAY_RULE_NONE)
			run_node(an, node, d->next[node], descend_edge, d);
		if (an->deadline && !(node & 63) && fay_monotonic_ns() > an->deadline)
			fail(an, fay_refuse(an->arena, FAY_RULE_LIM_TIME, node_address(an, node), "time ran out in the analysis"));
	}
}

/* Leaves the result in d->next. */
static void descend(struct fay_analysis *an, struct descent *d)
{
	for (uint32_t node = 0; node < an->graph->node_count && an->refusal.rule == FAY_RULE_NONE; node++)
		if (an->in[node])
			run_node(an, node, an->in[node], collect_back, d);
	for (int pass = 0; pass < 2 && an->refusal.rule == FAY_RULE_NONE; pass++) {
		struct fay_state **t = d->back;

		d->back = d->new_back;
		d->new_back = t;
		drop_all(an, d->new_back);
		drop_all(an, d->next);
		descend_once(an, d);
	}
}

/* ---- checking ---- */

struct check {
	bool inductive;
};

static void check_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to, struct fay_state *s)
{
	struct check *c = context;

	(void)from;
	if (!an->in[to] || !same_depth(an, to, an->in[to], s) || !fay_state_includes(an->in[to], s))
		c->inductive = false;
}

/* Whether an->in is inductive; gathers facts and obligations. */
static bool check(struct fay_analysis *an)
{
	struct check c = { .inductive = true };

	an->checking = true;
	an->pending_count = 0;
	an->obligation_count = 0;
	an->facts->event_fields = an->facts->clobbered_gprs = an->facts->arguments_used = an->facts->helpers = 0;
	an->deepest = 0;
	an->fence_steps = 0;
	fay_state_entry(an->current);
	if (!an->in[0] || !fay_state_includes(an->in[0], an->current))
		c.inductive = false;
	for (uint32_t node = 0; node < an->graph->node_count && c.inductive && an->refusal.rule == FAY_RULE_NONE; node++)
		if (an->in[node])
			run_node(an, node, an->in[node], check_edge, &c);
	an->checking = false;
	return c.inductive;
}

struct fay_refusal fay_fixpoint(struct fay_analysis *an)
{
	uint32_t n = an->graph->node_count;
	struct descent d = { .next = calloc(n, sizeof(struct fay_state *)), .back = calloc(n, sizeof(struct fay_state *)),
			     .new_back = calloc(n, sizeof(struct fay_state *)) };
	bool inductive = false;

	if (!d.next || !d.back || !d.new_back)
		fail(an, out_of_memory(an));
	else
		ascend(an);
	if (an->refusal.rule == FAY_RULE_NONE && an->graph->loop_count) {
		struct fay_state **wide = an->in;

		descend(an, &d);
		if (an->refusal.rule == FAY_RULE_NONE) {
			an->in = d.next;
			d.next = wide;
			inductive = check(an);
			if (!inductive) {
				d.next = an->in;
				an->in = wide;
			}
		}
	}
	if (an->refusal.rule == FAY_RULE_NONE && !inductive && !check(an))
		fail(an, fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, node_address(an, 0), "the analysis found no invariant"));
	if (d.next)
		drop_all(an, d.next);
	if (d.back)
		drop_all(an, d.back);
	if (d.new_back)
		drop_all(an, d.new_back);
	free(d.next);
	free(d.back);
	free(d.new_back);
	return an->refusal;
}

void fay_fixpoint_release(struct fay_analysis *an)
{
	if (an->in)
		drop_all(an, an->in);
}
