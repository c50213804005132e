/* SPDX-License-Identifier: MIT */
/*
 * What is told of a refusal beside its rule: the path to the place, the facts that were known
 * there, and where possible an execution that breaks the rule. Nothing is accepted here.
 */
#include <stdlib.h>
#include <string.h>

#include "counterexample.h"
#include "facts.h"
#include "verifier/prover/verify_parts.h"

void fay_run_fill_path(const struct fay_analysis *an, uint32_t node,
		       struct fay_rejection *rejection)
{
	const struct fay_graph *g = an->graph;
	uint32_t *from = calloc(g->node_count, sizeof(*from)),
		 *queue = calloc(g->node_count, sizeof(*queue));
	uint32_t head = 0, tail = 0, length = 1;

	if (from && queue) {
		memset(from, 0xff, g->node_count * sizeof(*from));
		from[0] = 0;
		queue[tail++] = 0;
		while (head < tail && from[node] == FAY_NONE) {
			uint32_t at = queue[head++];

			for (uint32_t k = 0; k < fay_node_fanout(&g->nodes[at]); k++) {
				uint32_t to = fay_node_succ(&g->nodes[at], k);

				if (to != FAY_NONE && from[to] == FAY_NONE) {
					from[to] = at;
					queue[tail++] = to;
				}
			}
		}
		for (uint32_t at = node; at != 0 && length < g->node_count; at = from[at])
			length++;
		/* The last FAY_MAX_PATH_STEPS blocks. */
		rejection->path_length = length < FAY_MAX_PATH_STEPS ? length : FAY_MAX_PATH_STEPS;
		for (size_t i = rejection->path_length; i-- > 0; node = from[node])
			rejection->path[i] =
				an->cfg->insns[an->cfg->blocks[g->nodes[node].block].first]
					.address -
				an->image->text.start;
	}
	free(from);
	free(queue);
}

struct fay_refusal fay_obligation_refusal(const struct fay_analysis *an,
					  const struct fay_obligation *o)
{
	return (struct fay_refusal){ .rule = o->rule,
				     .outcome = o->outcome,
				     .address = an->cfg->insns[o->insn].address,
				     .what = o->what,
				     .missing = o->missing };
}

static const char *unconfirmed(const struct fay_analysis *an, const struct fay_model *model)
{
	const char *text =
		"candidate, not confirmed by execution (state at the loop's head or the entry):\n";

	for (unsigned i = 0; text && i < 16; i++)
		if (i != FAY_RSP)
			text = fay_arena_printf(an->arena, "%s%s = 0x%llx\n", text,
						fay_gpr_name(i, 64),
						(unsigned long long)model->registers[i]);
	return text;
}

static bool by_policy(enum fay_rule rule)
{
	return !strncmp(fay_rule_id(rule), "POL-", 4);
}

void fay_run_reject_obligation(struct run *run, struct fay_analysis *an,
			       const struct fay_obligation *o, const struct fay_model *model)
{
	struct fay_obligation broken = *o;
	struct fay_rejection found = { 0 }, *rejection = &run->verdict->rejection;
	bool replayed = !by_policy(o->rule) && fay_counterexample_find(an, &broken, model, &found);
	struct fay_refusal refusal = fay_obligation_refusal(an, &broken);

	if (replayed) {
		refusal.outcome = fay_rule_outcome(broken.rule);
		refusal.missing = NULL;
	}
	fay_run_reject(run, &run->image, refusal);
	fay_run_fill_path(an, broken.node, rejection);
	if (replayed) {
		rejection->counterexample = found.counterexample;
		rejection->replayed = true;
		rejection->native_case = found.native_case;
		rejection->path_length = found.path_length;
		memcpy(rejection->path, found.path, sizeof(found.path));
	} else if (model && broken.missing) {
		rejection->counterexample = unconfirmed(an, model);
	}
	fay_facts_fill(an, broken.node, broken.insn, &broken, rejection);
}

void fay_run_fill_loop(struct run *run, struct fay_analysis *an, const struct fay_refusal *r)
{
	const struct fay_graph *g = an->graph;

	for (uint32_t node = 0; node < g->node_count; node++) {
		uint32_t first = an->cfg->blocks[g->nodes[node].block].first;

		if (!g->nodes[node].is_header || !an->in[node] ||
		    an->cfg->insns[first].address != r->address)
			continue;
		fay_run_fill_path(an, node, &run->verdict->rejection);
		fay_facts_fill(an, node, first, NULL, &run->verdict->rejection);
		return;
	}
}
