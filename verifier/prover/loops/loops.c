/* SPDX-License-Identifier: MIT */
/*
 * Cost: the longest path with the loops' bounds (ranking.c, unroll.c, smt_ranking.c) as factors.
 */
#include "loops.h"
#include "verifier/prover/smt/smt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 uwide;

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uwide p = (uwide)a * b;

	return p > UINT64_MAX ? UINT64_MAX : (uint64_t)p;
}

/* What stands for `node` at the level of loop `header`: itself, or the head of the loop within that
 * holds it. */
static uint32_t stand_in(const struct fay_graph *g, uint32_t node, uint32_t header)
{
	uint32_t loop = fay_graph_loop(g, node);

	while (loop != header) {
		node = loop;
		loop = g->nodes[node].header;
	}
	return node;
}

/* One run of a node's block. An element that rep moves counts as an instruction: a limit on
 * instructions is one on time. */
static uint64_t cost(const struct fay_analysis *an, uint32_t node)
{
	return add(an->cfg->blocks[an->graph->nodes[node].block].count,
		   an->moves ? an->moves[node] : 0);
}

/*
 * The loop nest as a tree of levels: a loop, or the whole graph, whose members are its nodes and,
 * each for all that it holds, the loops within. An edge of the graph is a step between two members
 * of one level, the innermost that holds both its ends. So each edge is looked at once, however
 * deep the nest.
 */
struct levels {
	const struct fay_analysis *an;
	/* per head, and behind the nodes the whole graph: its first member; the next one,
	 * ascending; FAY_NONE */
	uint32_t *member, *next_member;
	/* per member: its steps, 1 + place in `steps`; behind the nodes per head: those of the head
	 * itself, within its loop */
	uint32_t *step;
	struct step {
		uint32_t to, next;
	} *steps;
	uint64_t *total; /* per head: all visits in one stay */
	uint64_t *start; /* per member: the longest path to it in one iteration of its level */
};

/* The innermost loop that holds both nodes; a loop around another has the lesser head. */
static uint32_t common_loop(const struct fay_graph *g, uint32_t a, uint32_t b)
{
	uint32_t x = fay_graph_loop(g, a), y = fay_graph_loop(g, b);

	while (x != y) {
		if (y == FAY_NONE || (x != FAY_NONE && x > y))
			x = g->nodes[x].header;
		else
			y = g->nodes[y].header;
	}
	return x;
}

static bool late(const struct fay_analysis *an)
{
	return an->deadline && fay_monotonic_ns() > an->deadline;
}

/* False: out of memory or of time. */
static bool levels_init(struct levels *l, const struct fay_analysis *an)
{
	const struct fay_graph *g = an->graph;
	uint32_t n = g->node_count, count = 0;
	size_t edges = 1;

	for (uint32_t node = 0; node < n; node++)
		edges += fay_node_fanout(&g->nodes[node]);
	*l = (struct levels){ .an = an,
			      .member = malloc((n + 1) * sizeof(*l->member)),
			      .next_member = malloc(n * sizeof(*l->next_member)),
			      .step = calloc(2 * (size_t)n, sizeof(*l->step)),
			      .steps = calloc(edges, sizeof(*l->steps)),
			      .total = calloc(n, sizeof(*l->total)),
			      .start = calloc(n, sizeof(*l->start)) };
	if (!l->member || !l->next_member || !l->step || !l->steps || !l->total || !l->start)
		return false;
	memset(l->member, 0xff, (n + 1) * sizeof(*l->member));
	for (uint32_t node = n; node-- > 0;) {
		const struct fay_node *of = &g->nodes[node];
		uint32_t *level = &l->member[of->header == FAY_NONE ? n : of->header];

		if (!fay_reached(an, node))
			continue;
		l->next_member[node] = *level;
		*level = node;
		for (uint32_t k = 0; k < fay_node_fanout(of); k++) {
			uint32_t to = fay_node_succ(of, k), loop, from;

			if (to == FAY_NONE || !fay_reached(an, to) ||
			    (loop = common_loop(g, node, to)) == to)
				continue; /* what leads back to a head begins another iteration */
			from = stand_in(g, node, loop);
			l->steps[count] =
				(struct step){ .to = stand_in(g, to, loop),
					       .next = l->step[from == loop ? n + from : from] };
			l->step[from == loop ? n + from : from] = ++count;
			if (!(count & 255) && late(an))
				return false;
		}
	}
	return true;
}

static void levels_deinit(struct levels *l)
{
	free(l->member);
	free(l->next_member);
	free(l->step);
	free(l->steps);
	free(l->total);
	free(l->start);
}

/* A path that has come to `end` goes on by the steps of list `from`. */
static void go_on(struct levels *l, uint32_t from, uint64_t end)
{
	for (uint32_t k = l->step[from]; k; k = l->steps[k - 1].next)
		if (l->start[l->steps[k - 1].to] < end)
			l->start[l->steps[k - 1].to] = end;
}

/* The longest path through one iteration of loop `header` (FAY_NONE: through the whole graph).
 * Steps lead to later members, and the loops within have their totals. */
static uint64_t longest_path(struct levels *l, uint32_t header)
{
	const struct fay_graph *g = l->an->graph;
	uint64_t longest = header == FAY_NONE ? 0 : cost(l->an, header);

	if (header != FAY_NONE)
		go_on(l, g->node_count + header, longest);
	for (uint32_t node = l->member[header == FAY_NONE ? g->node_count : header];
	     node != FAY_NONE; node = l->next_member[node]) {
		uint64_t end = add(l->start[node],
				   g->nodes[node].is_header ? l->total[node] : cost(l->an, node));

		if (end > longest)
			longest = end;
		go_on(l, node, end);
	}
	return longest;
}

static struct fay_refusal unbounded(struct fay_analysis *an, uint32_t header)
{
	const struct fay_graph *g = an->graph;
	uint64_t address = an->cfg->insns[an->cfg->blocks[g->nodes[header].block].first].address;
	struct fay_refusal r = fay_refuse(an->arena, FAY_RULE_TRM_LOOP, address,
					  "no bound is proved for the loop that begins here");

	r.missing = "a register or stack slot that grows (or shrinks) in every iteration and stays "
		    "within a known interval at the loop's head";
	return r;
}

static struct fay_refusal failure(const struct fay_analysis *an)
{
	bool out_of_time = late(an);

	return fay_refuse(an->arena, out_of_time ? FAY_RULE_LIM_TIME : FAY_RULE_LIM_RESOURCE, 0,
			  out_of_time ? "time ran out while bounding loops" : "out of memory");
}

/* By the cheapest way that finds one. */
static void find_bound(struct fay_analysis *an, struct fay_ranking *r, struct fay_unroll *u,
		       uint32_t header)
{
	an->bounds[header] = fay_ranking_bound(r, header);
	if (an->bounds[header] == UINT64_MAX && !r->failed)
		an->bounds[header] = fay_unroll_bound(u, header, NULL);
	if (an->bounds[header] == UINT64_MAX && !r->failed && an->ask_bounds)
		an->bounds[header] = fay_smt_loop_bound(an, header);
}

struct fay_refusal fay_loops_bound(struct fay_analysis *an)
{
	const struct fay_graph *g = an->graph;
	uint32_t n = g->node_count;
	struct fay_ranking r;
	struct fay_unroll u;
	struct levels l = { 0 };
	struct fay_refusal refusal = { 0 };
	bool ready = fay_ranking_init(&r, an) && levels_init(&l, an);

	fay_unroll_init(&u, an);
	if (!ready)
		refusal = failure(an);
	for (uint32_t h = n; ready && refusal.rule == FAY_RULE_NONE && h-- > 0;) {
		if (!g->nodes[h].is_header || !fay_reached(an, h))
			continue;
		if (!an->swept)
			find_bound(an, &r, &u, h);
		if (r.failed)
			refusal = failure(an);
		else if (an->bounds[h] == UINT64_MAX)
			refusal = unbounded(an, h);
		else
			l.total[h] = multiply(longest_path(&l, h), an->bounds[h]);
	}
	if (refusal.rule == FAY_RULE_NONE)
		an->worst_instructions = longest_path(&l, FAY_NONE);
	fay_unroll_deinit(&u);
	fay_ranking_deinit(&r);
	levels_deinit(&l);
	return refusal;
}

struct fay_refusal fay_loops_templates(struct fay_analysis *an)
{
	const struct fay_graph *g = an->graph;
	struct fay_ranking r;
	struct fay_refusal refusal = { 0 };

	if (!fay_ranking_init(&r, an))
		refusal = failure(an);
	for (uint32_t h = 0; refusal.rule == FAY_RULE_NONE && h < g->node_count; h++)
		if (g->nodes[h].is_header && an->in[h] && !fay_ranking_templates(&r, h))
			refusal = failure(an);
	fay_ranking_deinit(&r);
	return refusal;
}
