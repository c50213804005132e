/* SPDX-License-Identifier: MIT */
/*
 * Termination and cost: a bound for every loop, and the longest path with these bounds as factors.
 *
 * A loop is bounded by ranking: some location (register or stack slot) that changes, from one visit of the loop's head to the next,
 * by an amount within [dlo, dhi] with one sign, on every path; while at the head its value stays within an interval [low, high]
 * that the fixpoint proved. If high - low + |d| stays below 2^64 the value cannot come back by wrapping, so it is strictly monotone,
 * and the head is visited at most (high - low) / min|d| + 1 times for each time the loop is entered.
 *
 * The amounts come from running the transfer functions over the body once more, starting from the head with each location tagged
 * with itself (struct fay_value: origin, dlo, dhi); a copy, a sum with a number of known range, a spill and a reload carry tags along.
 * At a join, tags with differing origins are dropped; at an inner loop's head a distance that still changes is dropped.
 */
#include "analysis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 uwide;

struct ranking {
	struct fay_analysis *an;
	uint32_t header;
	uint32_t last;              /* greatest node of the loop */
	struct fay_state **tagged;  /* per node: the proved state, with tags */
	uint8_t *pending;
	uint8_t *changes;           /* per node, saturating */
	struct fay_state *back;     /* tags at the back edges, joined */
	bool failed;                /* memory or time */
};

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
static struct fay_state *tagged_copy(const struct fay_analysis *an, uint32_t node, const struct fay_state *from)
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

static bool merge_tags(struct ranking *r, struct fay_state **slot, uint32_t node, const struct fay_state *from, bool give_up)
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

static void tag_edge(struct ranking *r, uint32_t to, const struct fay_state *s)
{
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

static void tag_node(struct ranking *r, uint32_t node)
{
	struct fay_analysis *an = r->an;
	const struct fay_node *n = &an->graph->nodes[node];
	const struct fay_block *block = &an->cfg->blocks[n->block];
	const struct fay_insn *last = &an->cfg->insns[block->first + block->count - 1];

	fay_state_copy(an->current, r->tagged[node]);
	if (!fay_transfer_block(an, node))
		return;
	if (last->op == OP_JCC) {
		fay_state_copy(an->branch, an->current);
		if (fay_transfer_assume(an, an->branch, (enum fay_cc)last->cc, true))
			tag_edge(r, n->succ[0], an->branch);
		if (fay_transfer_assume(an, an->current, (enum fay_cc)last->cc, false))
			tag_edge(r, n->succ[1], an->current);
	} else if (n->succ[0] != FAY_NONE) {
		tag_edge(r, n->succ[0], an->current);
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

static uint64_t bound_of(const struct ranking *r)
{
	const struct fay_state *head = r->an->in[r->header];
	uint64_t best = UINT64_MAX;

	if (!r->back)
		return 1; /* no back edge is ever taken */
	for (uint32_t i = 0; i < head->count; i++) {
		const struct fay_value *at = &head->loc[i], *v = &r->back->loc[i];
		uint64_t by_unsigned, by_signed;

		if (v->origin != i + 1 || !fay_value_numeric(at))
			continue;
		by_unsigned = bound_by(at->s.umax - at->s.umin, v->dlo, v->dhi);
		by_signed = bound_by((uint64_t)at->s.smax - (uint64_t)at->s.smin, v->dlo, v->dhi);
		best = by_unsigned < best ? by_unsigned : best;
		best = by_signed < best ? by_signed : best;
	}
	return best;
}

static bool late(const struct fay_analysis *an) { return an->deadline && fay_monotonic_ns() > an->deadline; }

static uint64_t rank_loop(struct fay_analysis *an, uint32_t header, uint32_t last, struct ranking *r)
{
	uint64_t bound;

	r->header = header;
	r->last = last;
	r->tagged[header] = tagged_copy(an, header, NULL);
	r->failed |= !r->tagged[header];
	r->pending[header] = 1;
	for (uint32_t node = header; node <= last && !r->failed;) {
		uint32_t next = node + 1;

		if (r->pending[node]) {
			const uint32_t *succ = an->graph->nodes[node].succ;

			r->pending[node] = 0;
			tag_node(r, node);
			r->failed |= late(an);
			for (int k = 0; k < 2; k++)
				if (succ[k] != FAY_NONE && succ[k] <= last && succ[k] < next && r->pending[succ[k]])
					next = succ[k];
		}
		node = next;
	}
	bound = r->failed ? UINT64_MAX : bound_of(r);
	for (uint32_t node = header; node <= last; node++) {
		free(r->tagged[node]);
		r->tagged[node] = NULL;
		r->pending[node] = r->changes[node] = 0;
	}
	free(r->back);
	r->back = NULL;
	return bound;
}

static uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uwide p = (uwide)a * b;

	return p > UINT64_MAX ? UINT64_MAX : (uint64_t)p;
}

/* What stands for `node` at the level of loop `header`: itself, or the head of the loop within that holds it. */
static uint32_t stand_in(const struct fay_graph *g, uint32_t node, uint32_t header)
{
	uint32_t loop = fay_graph_loop(g, node);

	while (loop != header) {
		node = loop;
		loop = g->nodes[node].header;
	}
	return node;
}

/* The longest path through one iteration of loop `header` (FAY_NONE: through the whole graph). */
static uint64_t longest_path(const struct fay_analysis *an, uint32_t header, uint32_t last, const uint64_t *total, uint64_t *start)
{
	const struct fay_graph *g = an->graph;
	uint32_t first = header == FAY_NONE ? 0 : header;
	uint64_t longest = 0;

	for (uint32_t node = first; node <= last; node++)
		start[node] = 0;
	for (uint32_t node = first; node <= last; node++) {
		uint32_t at;
		uint64_t end;

		if (!an->in[node] || (header != FAY_NONE && !fay_graph_in_loop(g, node, header)))
			continue;
		at = stand_in(g, node, header);
		end = g->nodes[at].is_header && at != header ? total[at] : an->cfg->blocks[g->nodes[at].block].count;
		end = add(start[at], end);
		if (end > longest)
			longest = end;
		for (int k = 0; k < 2; k++) {
			uint32_t to = g->nodes[node].succ[k], into;

			if (to == FAY_NONE || to == header || !an->in[to] || (header != FAY_NONE && !fay_graph_in_loop(g, to, header)))
				continue;
			into = stand_in(g, to, header);
			if (into != at && start[into] < end)
				start[into] = end;
		}
	}
	return longest;
}

static struct fay_refusal unbounded(struct fay_analysis *an, uint32_t header)
{
	const struct fay_graph *g = an->graph;
	uint64_t address = an->cfg->insns[an->cfg->blocks[g->nodes[header].block].first].address;
	struct fay_refusal r = fay_refuse(an->arena, FAY_RULE_TRM_LOOP, address, "no bound is proved for the loop that begins here");

	r.missing = "a register or stack slot that grows (or shrinks) in every iteration and stays within a known interval at the loop's head";
	return r;
}

struct fay_refusal fay_loops_bound(struct fay_analysis *an)
{
	const struct fay_graph *g = an->graph;
	uint32_t n = g->node_count;
	struct ranking r = { .an = an };
	struct fay_refusal refusal = { 0 };
	uint64_t *total = calloc(n, sizeof(*total)), *start = calloc(n, sizeof(*start));

	r.tagged = calloc(n, sizeof(struct fay_state *));
	r.pending = calloc(n, 1);
	r.changes = calloc(n, 1);
	if (!total || !start || !r.tagged || !r.pending || !r.changes) {
		refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory");
		goto out;
	}
	for (uint32_t h = n; h-- > 0;) {
		if (!g->nodes[h].is_header || !an->in[h])
			continue;
		an->bounds[h] = rank_loop(an, h, g->nodes[h].last, &r);
		if (r.failed) {
			refusal = fay_refuse(an->arena, late(an) ? FAY_RULE_LIM_TIME : FAY_RULE_LIM_RESOURCE, 0,
					     late(an) ? "time ran out while bounding loops" : "out of memory");
			goto out;
		}
		if (an->bounds[h] == UINT64_MAX) {
			refusal = unbounded(an, h);
			goto out;
		}
		total[h] = multiply(longest_path(an, h, g->nodes[h].last, total, start), an->bounds[h]);
	}
	an->worst_instructions = longest_path(an, FAY_NONE, n - 1, total, start);
out:
	free(total);
	free(start);
	free(r.tagged);
	free(r.pending);
	free(r.changes);
	return refusal;
}
