/* SPDX-License-Identifier: MIT */
/*
 * Loops with two entries, as compilers make them, become loops with one: what is entered beside the
 * head gets a copy of its own, up to the head. An edge leads to the same block as before, so the
 * graph has the executions that it had. Only the search for certificates uses such graphs: to the
 * checker they are nodes of the same code.
 */
#include "cfg_parts.h"

#include <stdlib.h>
#include <string.h>

#define SPLITS 8u    /* loops at most */
#define COPIES 2048u /* nodes, by all of them */

struct split {
	struct fay_graph *graph;
	struct fay_arena *arena;
	uint32_t *copy; /* per node, 1 + its copy; 0: none yet */
	bool *inside;   /* per node: in the loop, not as its head */
	uint32_t old, head, room;
};

/* Those that lead to the head without leaving what the head leads to. */
static bool find_inside(struct split *s, const bool *below)
{
	const struct fay_graph *g = s->graph;
	uint32_t *work = calloc(s->old, sizeof(*work)), count = 0;

	if (!work)
		return false;
	work[count++] = s->head;
	while (count) {
		const struct fay_node *n = &g->nodes[work[--count]];

		for (uint32_t i = 0; i < n->pred_count; i++) {
			uint32_t from = g->preds[n->first_pred + i];

			if (from == s->head || !below[from] || s->inside[from])
				continue;
			s->inside[from] = true;
			work[count++] = from;
		}
	}
	free(work);
	return true;
}

/* Where an edge to `to` leads that comes from outside, or from a copy. False: too many. */
static bool redirect(struct split *s, uint32_t *to)
{
	struct fay_node *n;

	if (*to == FAY_NONE || *to >= s->old || !s->inside[*to])
		return true;
	if (!s->copy[*to]) {
		struct fay_graph *g = s->graph;

		if (g->node_count == s->room)
			return false;
		n = &g->nodes[g->node_count++];
		*n = g->nodes[*to];
		if (n->table) {
			n->table = fay_arena_alloc(s->arena, n->table_count * sizeof(*n->table));
			if (!n->table)
				return false;
			memcpy(n->table, g->nodes[*to].table, n->table_count * sizeof(*n->table));
		}
		s->copy[*to] = g->node_count;
	}
	*to = s->copy[*to] - 1;
	return true;
}

static bool redirect_all(struct split *s)
{
	struct fay_graph *g = s->graph;

	for (uint32_t i = 0; i < g->node_count; i++) {
		struct fay_node *n = &g->nodes[i];
		bool outside = i >= s->old || (i != s->head && !s->inside[i]);

		for (uint32_t k = 0; outside && k < fay_node_fanout(n); k++)
			if (!redirect(s, n->table ? &n->table[k] : &n->succ[k]))
				return false;
	}
	return true;
}

/* As before loops were looked for. */
static void forget_nest(struct fay_graph *g)
{
	free(g->preds);
	g->preds = NULL;
	g->loop_count = 0;
	for (uint32_t i = 0; i < g->node_count; i++) {
		g->nodes[i].pred_count = 0;
		g->nodes[i].header = FAY_NONE;
		g->nodes[i].is_header = false;
	}
}

static bool split(struct fay_graph *g, struct fay_arena *arena, const struct fay_odd *odd,
		  uint32_t most)
{
	struct split s = { .graph = g,
			   .arena = arena,
			   .copy = calloc(g->node_count, sizeof(uint32_t)),
			   .inside = calloc(g->node_count, sizeof(bool)),
			   .old = g->node_count,
			   .head = odd->head,
			   .room = most };
	struct fay_node *nodes = realloc(g->nodes, most * sizeof(*nodes));
	bool ok = nodes && s.copy && s.inside;

	if (nodes)
		g->nodes = nodes;
	ok = ok && find_inside(&s, odd->below) && redirect_all(&s);
	free(s.copy);
	free(s.inside);
	forget_nest(g);
	return ok;
}

bool fay_graph_split(struct fay_graph *graph, struct fay_arena *arena, struct fay_odd *odd)
{
	uint32_t most = graph->node_count + COPIES;

	for (unsigned i = 0; i < SPLITS && odd->node != FAY_NONE; i++) {
		bool ok = split(graph, arena, odd, most);

		free(odd->below);
		*odd = (struct fay_odd){ .node = FAY_NONE };
		if (!ok || !fay_graph_nest(graph, odd))
			return false;
	}
	return true;
}
