/* SPDX-License-Identifier: MIT */
/*
 * Cost: the longest path with the loops' bounds (ranking.c, unroll.c, smt_ranking.c) as factors.
 */
#include "ranking.h"
#include "smt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 uwide;

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

/* One run of a node's block. An element that rep moves counts as an instruction: a limit on instructions is one on time. */
static uint64_t cost(const struct fay_analysis *an, uint32_t node)
{
	return add(an->cfg->blocks[an->graph->nodes[node].block].count, an->moves ? an->moves[node] : 0);
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

		if (!fay_reached(an, node) || (header != FAY_NONE && !fay_graph_in_loop(g, node, header)))
			continue;
		at = stand_in(g, node, header);
		end = g->nodes[at].is_header && at != header ? total[at] : cost(an, at);
		end = add(start[at], end);
		if (end > longest)
			longest = end;
		for (uint32_t k = 0; k < fay_node_fanout(&g->nodes[node]); k++) {
			uint32_t to = fay_node_succ(&g->nodes[node], k), into;

			if (to == FAY_NONE || to == header || !fay_reached(an, to) || (header != FAY_NONE && !fay_graph_in_loop(g, to, header)))
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

static struct fay_refusal failure(const struct fay_analysis *an)
{
	bool late = an->deadline && fay_monotonic_ns() > an->deadline;

	return fay_refuse(an->arena, late ? FAY_RULE_LIM_TIME : FAY_RULE_LIM_RESOURCE, 0, late ? "time ran out while bounding loops" : "out of memory");
}

/* By the cheapest way that finds one. */
static void find_bound(struct fay_analysis *an, struct fay_ranking *r, struct fay_unroll *u, uint32_t header)
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
	struct fay_refusal refusal = { 0 };
	uint64_t *total = calloc(n, sizeof(*total)), *start = calloc(n, sizeof(*start));
	bool ready = fay_ranking_init(&r, an) && total && start;

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
			total[h] = multiply(longest_path(an, h, g->nodes[h].last, total, start), an->bounds[h]);
	}
	if (refusal.rule == FAY_RULE_NONE)
		an->worst_instructions = longest_path(an, FAY_NONE, n - 1, total, start);
	fay_unroll_deinit(&u);
	fay_ranking_deinit(&r);
	free(total);
	free(start);
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
