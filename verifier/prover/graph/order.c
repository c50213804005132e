/* SPDX-License-Identifier: MIT */
/*
 * A weak topological order of a graph (Bourdoncle 1993): the reverse postorder, but so that the
 * nodes of each loop follow their head without a gap. In the reverse postorder what a loop is left
 * for may lie between its nodes; no way leads from there into the loop, since a loop is entered at
 * its head only and what leads back to the head belongs to it. So an edge that is not one back to a
 * head still leads to a later place.
 *
 * Takes one pass up, for the sizes of the loops, and one down, for the places.
 */
#include "cfg.h"

#include <stdlib.h>

bool fay_order_init(struct fay_order *o, const struct fay_graph *g)
{
	uint32_t n = g->node_count, *next = calloc(n, sizeof(*next)), top = 0;

	*o = (struct fay_order){ .at = calloc(n, sizeof(*o->at)),
				 .of = calloc(n, sizeof(*o->of)),
				 .end = calloc(n, sizeof(*o->end)) };
	if (!next || !o->at || !o->of || !o->end) {
		free(next);
		return false;
	}
	/* end: first the number of nodes. A head comes before what its loop holds. */
	for (uint32_t node = n; node-- > 0;) {
		o->end[node]++;
		if (g->nodes[node].header != FAY_NONE)
			o->end[g->nodes[node].header] += o->end[node];
	}
	for (uint32_t node = 0; node < n; node++) {
		uint32_t *place =
			g->nodes[node].header == FAY_NONE ? &top : &next[g->nodes[node].header];

		o->of[node] = *place;
		o->at[*place] = node;
		next[node] = *place + 1;
		*place += o->end[node];
		o->end[node] += o->of[node];
	}
	free(next);
	return true;
}

void fay_order_deinit(struct fay_order *o)
{
	free(o->at);
	free(o->of);
	free(o->end);
}
