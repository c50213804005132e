/* SPDX-License-Identifier: MIT */
/*
 * The order of a graph's nodes and the nest of its loops, by Havlak's version of Tarjan's algorithm
 * ("Nesting of Reducible and Irreducible Loops", TOPLAS 1997), which is nearly linear; an
 * irreducible loop is refused.
 */
#include "cfg_parts.h"

#include <stdlib.h>
#include <string.h>

struct order {
	uint32_t *pre;     /* node -> preorder number */
	uint32_t *last;    /* preorder number -> greatest preorder number below it */
	uint32_t *node_of; /* preorder number -> node */
	uint32_t *rank;    /* node -> reverse postorder number */
};

/* Depth-first search without recursion. */
static bool search(const struct fay_graph *graph, struct order *o)
{
	uint32_t n = graph->node_count, pre = 0, post = n, depth = 0;
	uint32_t *stack = calloc(n, sizeof(*stack));
	uint32_t *next = calloc(n, sizeof(*next));

	if (!stack || !next) {
		free(stack);
		free(next);
		return false;
	}
	memset(o->pre, 0xff, n * sizeof(*o->pre));
	stack[depth++] = 0;
	o->node_of[pre] = 0;
	o->pre[0] = pre++;
	while (depth) {
		uint32_t node = stack[depth - 1];

		if (next[node] < fay_node_fanout(&graph->nodes[node])) {
			/* The fall-through first, so that it ends up after the taken side in
			 * reverse postorder. */
			uint32_t to = fay_node_succ(&graph->nodes[node], next[node]++);

			if (to != FAY_NONE && o->pre[to] == FAY_NONE) {
				o->node_of[pre] = to;
				o->pre[to] = pre++;
				stack[depth++] = to;
			}
			continue;
		}
		o->last[o->pre[node]] = pre - 1;
		o->rank[node] = --post;
		depth--;
	}
	free(stack);
	free(next);
	return post == 0; /* every node is reachable, as it was made on being reached */
}

/* Renumbers the nodes in reverse postorder; o is in the new numbers afterwards. */
static bool renumber(struct fay_graph *graph, struct order *o)
{
	uint32_t n = graph->node_count;
	struct fay_node *nodes = calloc(n, sizeof(*nodes));
	uint32_t *pre = calloc(n, sizeof(*pre));

	if (!nodes || !pre) {
		free(nodes);
		free(pre);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		nodes[o->rank[i]] = graph->nodes[i];
		for (int k = 0; k < 2; k++)
			if (graph->nodes[i].succ[k] != FAY_NONE)
				nodes[o->rank[i]].succ[k] = o->rank[graph->nodes[i].succ[k]];
		for (uint32_t k = 0; k < nodes[o->rank[i]].table_count; k++)
			nodes[o->rank[i]].table[k] = o->rank[nodes[o->rank[i]].table[k]];
		pre[o->rank[i]] = o->pre[i];
	}
	for (uint32_t i = 0; i < n; i++)
		o->node_of[pre[i]] = i;
	free(graph->nodes);
	free(o->pre);
	graph->nodes = nodes;
	o->pre = pre;
	return true;
}

static bool list_preds(struct fay_graph *graph)
{
	uint32_t n = graph->node_count, total = 0;
	size_t edges = 1;

	for (uint32_t i = 0; i < n; i++)
		edges += fay_node_fanout(&graph->nodes[i]);
	graph->preds = calloc(edges, sizeof(*graph->preds));
	if (!graph->preds)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < fay_node_fanout(&graph->nodes[i]); k++)
			if (fay_node_succ(&graph->nodes[i], k) != FAY_NONE)
				graph->nodes[fay_node_succ(&graph->nodes[i], k)].pred_count++;
	for (uint32_t i = 0; i < n; i++) {
		graph->nodes[i].first_pred = total;
		total += graph->nodes[i].pred_count;
		graph->nodes[i].pred_count = 0;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < fay_node_fanout(&graph->nodes[i]); k++)
			if (fay_node_succ(&graph->nodes[i], k) != FAY_NONE) {
				struct fay_node *to =
					&graph->nodes[fay_node_succ(&graph->nodes[i], k)];

				graph->preds[to->first_pred + to->pred_count++] = i;
			}
	return true;
}

static uint32_t find(uint32_t *parent, uint32_t x)
{
	while (parent[x] != x) {
		parent[x] = parent[parent[x]];
		x = parent[x];
	}
	return x;
}

static bool is_ancestor(const struct order *o, uint32_t above, uint32_t below)
{
	return o->pre[above] <= o->pre[below] && o->pre[below] <= o->last[o->pre[above]];
}

/* All nodes of the loop of `header` get it as their header. FAY_NONE, or a node through which the
 * loop is entered beside its header. */
static uint32_t collect_loop(struct fay_graph *graph, const struct order *o, uint32_t *parent,
			     uint32_t *work, uint32_t *mark, uint32_t header)
{
	uint32_t count = 0, done = 0;
	struct fay_node *h = &graph->nodes[header];

	for (uint32_t i = 0; i < h->pred_count; i++) {
		uint32_t from = graph->preds[h->first_pred + i], x;

		if (!is_ancestor(o, header, from))
			continue;
		h->is_header = true;
		x = find(parent, from);
		if (x != header && mark[x] != header) {
			mark[x] = header;
			work[count++] = x;
		}
	}
	while (done < count) {
		const struct fay_node *node = &graph->nodes[work[done++]];

		for (uint32_t i = 0; i < node->pred_count; i++) {
			uint32_t from = graph->preds[node->first_pred + i], x;

			if (is_ancestor(o, (uint32_t)(node - graph->nodes), from))
				continue; /* a back edge to an inner header */
			x = find(parent, from);
			if (!is_ancestor(o, header, x))
				return (uint32_t)(node - graph->nodes);
			if (x != header && mark[x] != header) {
				mark[x] = header;
				work[count++] = x;
			}
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		graph->nodes[work[i]].header = header;
		parent[work[i]] = header;
	}
	graph->loop_count += h->is_header;
	return FAY_NONE;
}

/* Members of a loop have greater numbers than its head, so every loop within is done before its own
 * head's turn. */
static void find_last(struct fay_graph *graph)
{
	for (uint32_t i = 0; i < graph->node_count; i++)
		graph->nodes[i].last = i;
	for (uint32_t i = graph->node_count; i-- > 0;) {
		uint32_t header = graph->nodes[i].header;

		if (header != FAY_NONE && graph->nodes[header].last < graph->nodes[i].last)
			graph->nodes[header].last = graph->nodes[i].last;
	}
}

static bool list_below(const struct fay_graph *graph, const struct order *o, struct fay_odd *odd)
{
	odd->below = calloc(graph->node_count, sizeof(*odd->below));
	for (uint32_t i = 0; odd->below && i < graph->node_count; i++)
		odd->below[i] = is_ancestor(o, odd->head, i);
	return odd->below;
}

static bool nest_loops(struct fay_graph *graph, const struct order *o, struct fay_odd *odd)
{
	uint32_t n = graph->node_count;
	uint32_t *parent = calloc(n, sizeof(*parent)), *work = calloc(n, sizeof(*work)),
		 *mark = calloc(n, sizeof(*mark));
	bool ok = parent && work && mark;

	for (uint32_t i = 0; ok && i < n; i++) {
		parent[i] = i;
		mark[i] = FAY_NONE;
	}
	for (uint32_t p = n; ok && p-- > 0;) {
		odd->head = o->node_of[p];
		odd->node = collect_loop(graph, o, parent, work, mark, odd->head);
		if (odd->node != FAY_NONE) {
			ok = list_below(graph, o, odd);
			break;
		}
	}
	find_last(graph);
	free(parent);
	free(work);
	free(mark);
	return ok;
}

bool fay_graph_nest(struct fay_graph *graph, struct fay_odd *odd)
{
	uint32_t n = graph->node_count;
	struct order o = { .pre = calloc(n, sizeof(uint32_t)),
			   .last = calloc(n, sizeof(uint32_t)),
			   .node_of = calloc(n, sizeof(uint32_t)),
			   .rank = calloc(n, sizeof(uint32_t)) };
	bool ok = o.pre && o.last && o.node_of && o.rank && search(graph, &o) &&
		  renumber(graph, &o) && list_preds(graph);

	*odd = (struct fay_odd){ .node = FAY_NONE };
	ok = ok && nest_loops(graph, &o, odd);
	free(o.pre);
	free(o.last);
	free(o.node_of);
	free(o.rank);
	return ok;
}
