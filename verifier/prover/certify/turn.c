/* SPDX-License-Identifier: MIT */
/*
 * Turns: which time around of the loops around it a place is of. Every edge but those back to heads
 * leads to a later turn, so places are run in the order of turns, and that is their order in the
 * certificate.
 */
#include "certify_parts.h"

bool certify_turn_find(const struct certify *k, const struct turn *from, uint32_t node,
		       uint32_t skip, struct turn *t)
{
	const struct fay_graph *graph = k->c->graph;
	uint32_t loops[NEST_MOST], depth = 0;
	bool common = from != NULL;

	for (uint32_t h = fay_graph_loop(graph, node); h != FAY_NONE; h = graph->nodes[h].header) {
		if (depth == NEST_MOST)
			return false;
		loops[depth++] = h;
	}
	t->size = 0;
	while (depth--) {
		uint32_t head = k->order.of[loops[depth]], i = t->size;

		common = common && i + 1 < from->size && from->at[i] == head;
		t->at[i] = head;
		t->at[i + 1] = common ? from->at[i + 1] + (loops[depth] == node && !skip) : 0;
		t->size += 2;
	}
	t->at[t->size++] = k->order.of[node];
	t->at[t->size++] = skip;
	return true;
}

int certify_turn_compare(const struct turn *a, const struct turn *b)
{
	for (uint32_t i = 0; i < a->size && i < b->size; i++)
		if (a->at[i] != b->at[i])
			return a->at[i] < b->at[i] ? -1 : 1;
	return 0;
}

bool certify_turn_inside(const struct certify *k, uint32_t at, uint32_t head)
{
	const struct turn *loop = k->places[head].turn, *t = k->places[at].turn;

	for (uint32_t i = 0; i + 2 < loop->size; i++)
		if (i >= t->size || t->at[i] != loop->at[i])
			return false;
	return at == head || certify_turn_compare(loop, t) < 0;
}
