/* SPDX-License-Identifier: MIT */
/*
 * fay_verify(): what the checker or the prover decided, and of a refusal what is told beside its
 * rule: the path to the place, the facts that were known there, and where possible an execution
 * that breaks the rule. Nothing is accepted here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "verifier/accept/accept.h"

static void fill_path(const struct fay_analysis *an, uint32_t node, struct fay_rejection *rejection)
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

static void place(struct fay_run *run, const struct fay_refusal *refusal)
{
	run->verdict->outcome = refusal->outcome;
	fay_rejection_fill(run->arena, run->placed ? &run->image : NULL, refusal,
			   &run->verdict->rejection);
}

/* An execution that breaks the rule says more than the proof that failed. What a policy does not
 * allow needs none. */
static void explain_obligation(struct fay_run *run)
{
	struct fay_analysis *an = &run->an;
	struct fay_obligation broken = *run->broken;
	struct fay_rejection found = { 0 }, *rejection = &run->verdict->rejection;
	bool replayed =
		!by_policy(broken.rule) && fay_counterexample_find(an, &broken, run->model, &found);
	struct fay_refusal refusal = run->refusal;

	if (replayed) {
		refusal.outcome = fay_rule_outcome(broken.rule);
		refusal.missing = NULL;
	}
	place(run, &refusal);
	fill_path(an, broken.node, rejection);
	if (replayed) {
		rejection->counterexample = found.counterexample;
		rejection->replayed = true;
		rejection->native_case = found.native_case;
		rejection->path_length = found.path_length;
		memcpy(rejection->path, found.path, sizeof(found.path));
	} else if (run->model && broken.missing) {
		rejection->counterexample = unconfirmed(an, run->model);
	}
	fay_facts_fill(an, broken.node, broken.insn, &broken, rejection);
}

/* Termination: the refusal names a loop's head. */
static void explain_loop(struct fay_run *run)
{
	struct fay_analysis *an = &run->an;
	const struct fay_graph *g = an->graph;

	for (uint32_t node = 0; node < g->node_count; node++) {
		uint32_t first = an->cfg->blocks[g->nodes[node].block].first;

		if (!g->nodes[node].is_header || !an->in[node] ||
		    an->cfg->insns[first].address != run->refusal.address)
			continue;
		fill_path(an, node, &run->verdict->rejection);
		fay_facts_fill(an, node, first, NULL, &run->verdict->rejection);
		return;
	}
}

static void explain(struct fay_run *run)
{
	if (run->refused == REFUSED_OBLIGATION) {
		explain_obligation(run);
		return;
	}
	place(run, &run->refusal);
	if (run->refused == REFUSED_LOOP)
		explain_loop(run);
	if (run->refused == REFUSED_SPECULATION) {
		fill_path(&run->an, run->broken->node, &run->verdict->rejection);
		fay_facts_fill(&run->an, run->broken->node, run->broken->insn, NULL,
			       &run->verdict->rejection);
	}
}

int fay_conclude(struct fay_run *run, const void *bytes, size_t size, struct fay_bytes *certificate)
{
	struct fay_verdict *verdict = run->verdict;
	struct fay_arena *refused = verdict->outcome == FAY_ACCEPTED ? NULL : run->arena;
	int error;

	if (refused && (!fay_certify_refused(run, bytes, size, certificate) ||
			!fay_accept_found(bytes, size, certificate->at, certificate->size,
					  run->policy, verdict))) {
		refused = NULL;
		explain(run);
	}
	error = fay_run_end(run);
	if (refused)
		fay_arena_destroy(refused);
	return error;
}

/* Proved; or accepted by a certificate that was found before: NULL. */
static struct fay_run *prove_or_find(const void *bytes, size_t size,
				     const struct fay_policy *policy, struct fay_bytes *certificate,
				     struct fay_verdict *verdict)
{
	struct fay_run *run = fay_prove_or_find(bytes, size, policy, certificate, verdict);
	struct fay_arena *arena = run ? run->arena : NULL;
	bool accepted;

	if (!run || !certificate->size)
		return run;
	accepted = fay_accept_found(bytes, size, certificate->at, certificate->size, run->policy,
				    verdict);
	fay_run_end(run);
	fay_arena_destroy(arena);
	certificate->size = 0;
	return accepted ? NULL : fay_prove(bytes, size, policy, NULL, NULL, NULL, verdict);
}

static int verify(const void *bytes, size_t size, const struct fay_policy *policy,
		  const char *smt2_dir, struct fay_verdict *verdict)
{
	struct fay_bytes certificate = { 0 };
	struct fay_run *run;
	int error = 0;

	run = smt2_dir ? fay_prove(bytes, size, policy, smt2_dir, NULL, NULL, verdict)
		       : prove_or_find(bytes, size, policy, &certificate, verdict);
	if (run)
		error = fay_conclude(run, bytes, size, &certificate);
	else if (verdict->outcome != FAY_ACCEPTED)
		error = ENOMEM;
	free(certificate.at);
	return error;
}

void fay_verify(const void *bytes, size_t size, const struct fay_policy *policy,
		struct fay_verdict *verdict)
{
	if (fay_accept_certified(bytes, size, policy, verdict))
		return;
	verify(bytes, size, policy, NULL, verdict);
	fay_demand_certificate(bytes, size, policy, verdict);
}

int fay_verify_smt2(const void *bytes, size_t size, const struct fay_policy *policy,
		    const char *smt2_dir, struct fay_verdict *verdict)
{
	int error = verify(bytes, size, policy, smt2_dir, verdict);

	if (!error) {
		fay_demand_certificate(bytes, size, policy, verdict);
		return 0;
	}
	errno = error;
	return -1;
}

void fay_verdict_deinit(struct fay_verdict *verdict)
{
	if (verdict->arena)
		fay_arena_destroy(verdict->arena);
	*verdict = (struct fay_verdict){ 0 };
}
