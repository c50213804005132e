/* SPDX-License-Identifier: MIT */
/*
 * The fixpoint over the graph of one probe, and the check that it is one.
 *
 * fixpoint_find.c finds states, and is not trusted: the last pass, here, runs every block from its
 * state and checks that what comes out is included in the successors' states, and only then raises
 * the obligations. So the states are an inductive invariant however they were found.
 */
#include "fixpoint_parts.h"

#include <stdlib.h>
#include <string.h>

#include "verifier/prover/state/state.h"

bool fay_fixpoint_same_depth(struct fay_analysis *an, uint32_t node, const struct fay_state *a,
			     const struct fay_state *b)
{
	if (a->count == b->count)
		return true;
	fay_analysis_fail(
		an, fay_refuse(an->arena, FAY_RULE_STK_POINTER, fay_node_address(an, node),
			       "the stack pointer here is %lld or %lld bytes below the return "
			       "address, depending on the path",
			       (long long)fay_state_depth(a), (long long)fay_state_depth(b)));
	return false;
}

/* ---- checking ---- */

struct check {
	bool inductive;
};

static void check_edge(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
		       struct fay_state *s)
{
	struct check *c = context;

	(void)from;
	if (!an->in[to] || !fay_fixpoint_same_depth(an, to, an->in[to], s) ||
	    !fay_state_includes(an->in[to], s))
		c->inductive = false;
}

bool fay_fixpoint_check(struct fay_analysis *an)
{
	struct check c = { .inductive = true };

	an->checking = true;
	an->pending_count = 0;
	an->obligation_count = 0;
	an->facts->event_fields = an->facts->clobbered_gprs = an->facts->arguments_used =
		an->facts->helpers = 0;
	an->deepest = 0;
	an->fence_steps = 0;
	if (an->moves)
		memset(an->moves, 0, an->graph->node_count * sizeof(*an->moves));
	fay_state_entry(an->current);
	if (!an->in[0] || !fay_state_includes(an->in[0], an->current))
		c.inductive = false;
	for (uint32_t node = 0;
	     node < an->graph->node_count && c.inductive && an->refusal.rule == FAY_RULE_NONE;
	     node++)
		if (an->in[node])
			fay_node_run(an, node, an->in[node], check_edge, &c);
	an->checking = false;
	return c.inductive;
}

struct fay_refusal fay_fixpoint(struct fay_analysis *an)
{
	bool widened;

	an->exploring = true;
	widened = fay_fixpoint_ascend(an);
	an->exploring = false;
	/* the graph lacks edges: no more than a way to find them */
	if (an->refusal.rule == FAY_RULE_NONE && an->found_count)
		fay_analysis_fail(an,
				  fay_refuse(an->arena, FAY_RULE_CFI_INDIRECT, an->found[0].from,
					     "an indirect jump: its target is not proved"));
	if (an->refusal.rule == FAY_RULE_NONE && !(widened && fay_fixpoint_narrow(an)) &&
	    an->refusal.rule == FAY_RULE_NONE && !fay_fixpoint_check(an))
		fay_analysis_fail(an, fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE,
						 fay_node_address(an, 0),
						 "the analysis found no invariant"));
	return an->refusal;
}
