/* SPDX-License-Identifier: MIT */
/* What those who analyse a probe share: a node is run, states are released. */
#include "analysis.h"

#include <stdlib.h>

bool fay_node_run(struct fay_analysis *an, uint32_t node, const struct fay_state *in,
		  fay_edge_function *edge, void *context)
{
	const struct fay_node *n = &an->graph->nodes[node];
	enum fay_cc cc;

	if (in != an->current)
		fay_state_copy(an->current, in);
	if (!fay_transfer_block(an, node))
		return false;
	if (fay_node_branches(an, node, &cc)) {
		fay_state_copy(an->branch, an->current);
		if (fay_transfer_assume(an, an->branch, cc, true))
			edge(an, context, node, n->succ[0], an->branch);
		if (fay_transfer_assume(an, an->current, cc, false))
			edge(an, context, node, n->succ[1], an->current);
	} else if (n->table) {
		for (uint32_t k = 0; k < n->table_count && an->refusal.rule == FAY_RULE_NONE; k++) {
			/* joins split slots of what they are given */
			fay_state_copy(an->branch, an->current);
			edge(an, context, node, n->table[k], an->branch);
			if (an->deadline && (k & 63) == 63 && fay_monotonic_ns() > an->deadline)
				fay_analysis_fail(an, fay_refuse(an->arena, FAY_RULE_LIM_TIME,
								 fay_node_address(an, node),
								 "time ran out in the analysis"));
		}
	} else if (n->succ[0] != FAY_NONE && fay_relations_reduce(an->current)) {
		edge(an, context, node, n->succ[0], an->current);
	}
	return true;
}

void fay_analysis_drop(struct fay_analysis *an, struct fay_state *s)
{
	if (s)
		an->state_bytes -= fay_state_size(s->count);
	free(s);
}

void fay_analysis_drop_all(struct fay_analysis *an, struct fay_state **states)
{
	for (uint32_t i = 0; i < an->graph->node_count; i++) {
		fay_analysis_drop(an, states[i]);
		states[i] = NULL;
	}
}

void fay_analysis_release(struct fay_analysis *an)
{
	if (an->in)
		fay_analysis_drop_all(an, an->in);
	free(an->reached);
	an->reached = NULL;
}
