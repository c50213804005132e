/* SPDX-License-Identifier: MIT */
/*
 * The verifier's main line: parse, decode, and for each probe: graph, invariant, obligations, loop
 * bounds, policy. Any doubt is a rejection. docs/verifier.md argues guarantee by guarantee why an
 * accepted image keeps them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/explain/facts.h"
#include "verifier/prover/fixpoint/fixpoint.h"
#include "verifier/explain/report.h"
#include "verify_parts.h"

#define ARENA_BYTES ((size_t)512 << 20)

static const struct fay_refusal fine;

void fay_run_reject(struct run *run, const struct fay_image *image, struct fay_refusal refusal)
{
	run->verdict->outcome = refusal.outcome;
	fay_rejection_fill(run->arena, image, &refusal, &run->verdict->rejection);
}

/* ---- one probe ---- */

static struct fay_refusal check_operations(const struct run *run)
{
	const struct fay_policy *policy = run->policy;
	bool denied[OP_COUNT] = { false };

	for (unsigned op = 0; op < OP_COUNT; op++)
		for (uint32_t i = 0; i < policy->denied_count &&
				     i < sizeof(policy->denied) / sizeof(policy->denied[0]);
		     i++)
			denied[op] |= !strcmp(fay_op_table[op].name, policy->denied[i]);
	for (uint32_t i = 0; policy->denied_count && i < run->cfg.insn_count; i++)
		if (denied[run->cfg.insns[i].op])
			return fay_refuse(run->arena, FAY_RULE_POL_OPERATION,
					  run->cfg.insns[i].address, "the policy does not allow %s",
					  fay_op_table[run->cfg.insns[i].op].name);
	return fine;
}

static struct fay_refusal too_many(const struct fay_analysis *an, uint64_t instructions)
{
	return fay_refuse(an->arena, FAY_RULE_POL_INSTRUCTIONS,
			  an->image->layout_base + an->facts->code_offset,
			  "%llu instructions in the worst case; the policy allows %llu",
			  (unsigned long long)instructions,
			  (unsigned long long)an->policy->max_instructions);
}

static struct fay_refusal check_costs(struct fay_analysis *an)
{
	const struct fay_policy *policy = an->policy;
	uint64_t entry = an->image->layout_base + an->facts->code_offset;

	an->facts->worst_instructions = an->worst_instructions;
	an->facts->worst_stack = (uint64_t)an->deepest + 8;
	if (an->worst_instructions > policy->max_instructions)
		return too_many(an, an->worst_instructions);
	for (unsigned bit = 0; bit < 32; bit++)
		if ((an->facts->event_fields & ~policy->allow_fields) >> bit & 1)
			return fay_refuse(an->arena, FAY_RULE_POL_FIELD, entry,
					  "the probe reads event.%s; the policy does not allow it",
					  fay_event_field_name(bit) ? fay_event_field_name(bit)
								    : "?");
	if (an->facts->worst_stack > policy->max_stack)
		return fay_refuse(an->arena, FAY_RULE_POL_STACK, entry,
				  "%llu bytes of stack in the worst case; the policy allows %llu",
				  (unsigned long long)an->facts->worst_stack,
				  (unsigned long long)policy->max_stack);
	return fine;
}

/* Asks the solver for what the abstract values left open. False: rejected. */
static bool discharge(struct run *run, struct fay_analysis *an)
{
	struct fay_model *model = calloc(1, sizeof(*model));
	bool ok = model != NULL;

	for (uint32_t i = 0; ok && i < an->pending_count; i++) {
		const struct fay_obligation *o = &an->pending[i];
		enum fay_answer answer = fay_smt_ask(an, o, model, run->smt2);

		if (answer != ANSWER_PROVED) {
			fay_run_reject_obligation(run, an, o,
						  answer == ANSWER_REFUTED ? model : NULL);
			free(model);
			return false;
		}
		run->verdict->obligations_by_solver++;
	}
	if (!model)
		fay_run_reject(run, NULL,
			       fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory"));
	free(model);
	return ok;
}

/* Every obligation as SMT-LIB 2, if that was asked for. */
static struct fay_refusal write_proof(struct run *run, struct fay_analysis *an)
{
	if (!run->smt2 || fay_proof_write(an, run->smt2))
		return fine;
	return an->refusal.rule != FAY_RULE_NONE
		       ? an->refusal
		       : fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, 0,
				    "out of memory while writing the proof");
}

/* Invariant, obligations, bounds. False: rejected. */
static bool analyse(struct run *run, struct fay_analysis *an)
{
	struct fay_refusal r = fay_fixpoint_with_relations(an);

	if (r.rule == FAY_RULE_NONE) {
		run->verdict->obligations += an->obligation_count;
		if (!discharge(run, an))
			return false;
		an->ask_bounds = true;
		r = fay_loops_bound(an);
		/* the first attempt knew a bound */
		if (r.rule == FAY_RULE_TRM_LOOP && an->too_many)
			r = too_many(an, an->too_many);
	}
	if (r.rule == FAY_RULE_NONE)
		r = check_costs(an);
	if (r.rule == FAY_RULE_NONE)
		r = write_proof(run, an);
	if (r.rule != FAY_RULE_NONE && !an->found_count)
		fay_run_reject(run, &run->image, r);
	if (r.rule == FAY_RULE_TRM_LOOP)
		fay_run_fill_loop(run, an, &r);
	an->facts->analysed = r.rule == FAY_RULE_NONE;
	return r.rule == FAY_RULE_NONE;
}

/*
 * Guarantee 7: the same invariants and obligations once more with every branch taken either way
 * whatever its condition says, except for what an lfence has settled. What then cannot be shown in
 * bounds rests on a branch.
 */
static bool speculate(struct run *run, struct fay_analysis *an)
{
	struct fay_state **proved = an->in;
	struct fay_probe_facts scratch = *an->facts, *facts = an->facts;
	struct fay_refusal r;
	bool ok = true;

	an->in = calloc(an->graph->node_count, sizeof(struct fay_state *));
	if (!an->in) {
		an->in = proved;
		fay_run_reject(run, NULL,
			       fay_refuse(run->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory"));
		return false;
	}
	memset(an->visits, 0, an->graph->node_count * sizeof(*an->visits));
	an->refine = false;
	an->architectural = proved;
	an->facts = &scratch;
	r = fay_fixpoint(an);
	an->facts = facts;
	if (r.rule != FAY_RULE_NONE) {
		fay_run_reject(run, &run->image, r);
		ok = false;
	}
	for (uint32_t i = 0; ok && i < an->pending_count; i++) {
		struct fay_obligation *o = &an->pending[i];

		if (o->goal == GOAL_DIVIDE)
			continue; /* a division that faults is not retired */
		r = fay_obligation_refusal(an, o);
		r.rule = FAY_RULE_SPC_BRANCH;
		r.outcome = FAY_UNPROVED;
		r.missing = "a mask, a conditional move or an lfence between the branch and this "
			    "instruction";
		fay_run_reject(run, &run->image, r);
		fay_run_fill_path(an, o->node, &run->verdict->rejection);
		fay_facts_fill(an, o->node, o->insn, NULL, &run->verdict->rejection);
		ok = false;
	}
	if (ok) {
		r = write_proof(run, an);
		ok = r.rule == FAY_RULE_NONE;
		if (!ok)
			fay_run_reject(run, &run->image, r);
	}
	fay_fixpoint_release(an);
	free(an->in);
	an->in = proved;
	an->architectural = NULL;
	an->refine = true;
	return ok;
}

static void release(struct fay_analysis *an)
{
	fay_fixpoint_release(an);
	free(an->in);
	free(an->visits);
	free(an->bounds);
	free(an->moves);
	free(an->current);
	free(an->branch);
	free(an->pending);
	free(an->templates);
	free(an->found);
}

static bool verify_graph(struct run *run, const struct fay_graph *graph,
			 struct fay_probe_facts *facts, const struct fay_thresholds *thresholds,
			 struct fay_jump **found, uint32_t *found_count)
{
	struct fay_analysis an = {
		.arena = run->arena,
		.image = &run->image,
		.policy = run->policy,
		.cfg = &run->cfg,
		.graph = graph,
		.verdict = run->verdict,
		.cache = run->cache,
		.deadline = run->deadline,
		.thresholds = *thresholds,
		.refine = true,
		.facts = facts,
		/* they need all states */
		.thorough = run->smt2 || run->policy->speculation_confined,
		.in = calloc(graph->node_count, sizeof(struct fay_state *)),
		.visits = calloc(graph->node_count, sizeof(uint16_t)),
		.bounds = calloc(graph->node_count, sizeof(uint64_t)),
		.moves = calloc(graph->node_count, sizeof(uint64_t)),
		.current = fay_state_create(FAY_MAX_LOCATIONS),
		.branch = fay_state_create(FAY_MAX_LOCATIONS),
	};
	bool ok = false;

	if (!an.in || !an.visits || !an.bounds || !an.moves || !an.current || !an.branch)
		fay_run_reject(run, NULL,
			       fay_refuse(run->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory"));
	else
		ok = analyse(run, &an) &&
		     (!run->policy->speculation_confined || speculate(run, &an));
	*found = an.found;
	*found_count = an.found_count;
	an.found = NULL;
	release(&an);
	return ok;
}

/* One attempt; *found are places of indirect jumps that the graph lacks: then nothing was decided.
 * */
static bool attempt_probe(struct run *run, struct fay_probe_facts *facts,
			  const struct fay_thresholds *thresholds, struct fay_jump **found,
			  uint32_t *found_count)
{
	struct fay_graph graph = { 0 };
	uint64_t entry = run->image.layout_base + facts->code_offset;
	struct fay_refusal r;
	bool ok;

	/* Of many probes each may take little of what is looked at the clock for, but much in
	 * making its graph. */
	if (run->deadline && fay_monotonic_ns() > run->deadline)
		r = fay_refuse(run->arena, FAY_RULE_LIM_TIME, entry,
			       "time ran out before all probes were looked at");
	else
		r = fay_graph_build(&graph, &run->cfg, entry);
	*found = NULL;
	*found_count = 0;
	if (r.rule != FAY_RULE_NONE) {
		fay_run_reject(run, &run->image, r);
		ok = false;
	} else {
		ok = verify_graph(run, &graph, facts, thresholds, found, found_count);
		if (!*found_count) {
			run->verdict->blocks += graph.node_count;
			run->verdict->loops += graph.loop_count;
		}
	}
	fay_graph_deinit(&graph);
	return ok;
}

static bool verify_probe(struct run *run, struct fay_probe_facts *facts,
			 const struct fay_thresholds *thresholds)
{
	const struct fay_probe_facts blank = *facts;

	for (unsigned round = 0;; round++) {
		struct fay_refusal r;
		struct fay_jump *found;
		uint32_t count;
		bool ok = attempt_probe(run, facts, thresholds, &found, &count);

		if (!count) {
			free(found);
			return ok;
		}
		r = round < FAY_MAX_DISCOVERIES
			    ? fay_cfg_extend(&run->cfg, found, count, run->deadline)
			    : fay_refuse(run->arena, FAY_RULE_LIM_RESOURCE, found[0].from,
					 "indirect jumps that lead to ever more indirect jumps");
		free(found);
		*facts = blank;
		run->verdict->instructions = run->cfg.insn_count;
		if (r.rule == FAY_RULE_NONE)
			r = check_operations(run); /* there is more code than before */
		if (r.rule != FAY_RULE_NONE) {
			fay_run_reject(run, &run->image, r);
			return false;
		}
	}
}

/* ---- the image ---- */

static struct fay_refusal check_policy(const struct run *run)
{
	const struct fay_policy *policy = run->policy;
	const struct fay_image *image = &run->image;

	if (image->header.local_size > policy->max_local ||
	    image->header.global_size > policy->max_global)
		return fay_refuse(
			run->arena, FAY_RULE_POL_STATE, 0,
			"%u bytes of local and %u of global state; the policy allows %llu and %llu",
			image->header.local_size, image->header.global_size,
			(unsigned long long)policy->max_local,
			(unsigned long long)policy->max_global);
	for (uint32_t i = 0; i < image->probe_count; i++)
		if (!(policy->allow_kinds >> (image->probes[i].kind & 31) & 1))
			return fay_refuse(run->arena, FAY_RULE_POL_KIND, 0,
					  "the policy does not allow probes of kind \"%s\"",
					  fay_probe_kind_name(image->probes[i].kind));
	for (uint32_t i = 0; i < image->probe_count; i++)
		if (!fay_policy_allows(policy, image->probes[i].pattern))
			return fay_refuse(
				run->arena, FAY_RULE_POL_TRACEPOINT, 0,
				"the policy does not allow all that tracepoint \"%s\" can match",
				image->probes[i].pattern);
	return fine;
}

static bool report_jumps(struct run *run)
{
	const struct fay_cfg *cfg = &run->cfg;
	struct fay_verdict_jump *jumps = fay_arena_alloc(
		run->arena, (cfg->jump_count ? cfg->jump_count : 1) * sizeof(*jumps));

	for (uint32_t i = 0; jumps && i < cfg->jump_count; i++)
		jumps[i] = (struct fay_verdict_jump){
			.from = (uint32_t)(cfg->jumps[i].from - run->image.layout_base),
			.to = (uint32_t)(cfg->jumps[i].to - run->image.layout_base)
		};
	run->verdict->jumps = jumps;
	run->verdict->jump_count = jumps ? cfg->jump_count : 0;
	if (!jumps)
		fay_run_reject(run, NULL,
			       fay_refuse(run->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory"));
	return jumps != NULL;
}

static void verify_image(struct run *run, const void *bytes, size_t size)
{
	struct fay_refusal r = fay_image_parse(run->arena, bytes, size, &run->image);
	struct fay_thresholds *thresholds;
	bool ok = true;

	if (r.rule != FAY_RULE_NONE) {
		fay_run_reject(run, NULL, r);
		return;
	}
	run->verdict->schema = run->image.schema;
	run->verdict->probe_count = run->image.probe_count;
	run->verdict->probes = run->image.probes;
	r = check_policy(run);
	if (r.rule == FAY_RULE_NONE)
		r = fay_cfg_build(&run->cfg, run->arena, &run->image, run->deadline);
	if (r.rule == FAY_RULE_NONE)
		r = check_operations(run);
	run->verdict->instructions = run->cfg.insn_count;
	thresholds = fay_arena_alloc(run->arena, sizeof(*thresholds));
	if (r.rule == FAY_RULE_NONE && !thresholds)
		r = fay_refuse(run->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory");
	if (r.rule != FAY_RULE_NONE) {
		fay_run_reject(run, &run->image, r);
		return;
	}
	fay_thresholds_collect(thresholds, &run->image, &run->cfg);
	for (uint32_t i = 0; ok && i < run->image.probe_count; i++) {
		if (run->smt2)
			run->smt2->probe = i;
		ok = verify_probe(run, &run->image.probes[i], thresholds);
	}
	if (!ok || !report_jumps(run))
		return;
	run->verdict->outcome = FAY_ACCEPTED;
	run->verdict->layout = run->image.layout;
}

static int verify(const void *bytes, size_t size, const struct fay_policy *policy,
		  const char *smt2_dir, struct fay_verdict *verdict)
{
	struct fay_smt2 smt2;
	uint64_t begin = fay_monotonic_ns();
	struct fay_policy standard;
	struct run *run = calloc(1, sizeof(*run));
	int error = ENOMEM;

	*verdict = (struct fay_verdict){ .outcome = FAY_EXHAUSTED };
	verdict->rejection = (struct fay_rejection){ .rule = FAY_RULE_LIM_RESOURCE,
						     .outcome = FAY_EXHAUSTED,
						     .what = "out of memory" };
	fay_policy_default(&standard);
	if (run)
		run->arena = fay_arena_create(ARENA_BYTES);
	if (run && run->arena) {
		verdict->arena = run->arena;
		run->policy = policy ? policy : &standard;
		run->verdict = verdict;
		/* NULL: every question is asked */
		run->cache = fay_arena_alloc(run->arena, sizeof(*run->cache));
		run->deadline = run->policy->total_ms
					? begin + run->policy->total_ms * (uint64_t)1000000
					: 0;
		/* a larger one is refused for its size; its hash would take longer than all else */
		if (size <= FAY_IMAGE_MAX_FILE)
			fay_sha256(bytes, size, verdict->image_sha256);
		if (smt2_dir && fay_smt2_open(&smt2, smt2_dir, verdict))
			run->smt2 = &smt2;
		verify_image(run, bytes, size);
		fay_cfg_deinit(&run->cfg);
		if (verdict->outcome == FAY_ACCEPTED)
			verdict->rejection = (struct fay_rejection){ 0 };
		if (run->smt2)
			fay_smt2_close(&smt2, verdict);
		error = smt2_dir ? smt2.error ? smt2.error : smt2.truncated ? EFBIG : 0 : 0;
	}
	free(run);
	verdict->nanoseconds = fay_monotonic_ns() - begin;
	return error;
}

void fay_verify(const void *bytes, size_t size, const struct fay_policy *policy,
		struct fay_verdict *verdict)
{
	verify(bytes, size, policy, NULL, verdict);
}

void fay_verdict_deinit(struct fay_verdict *verdict)
{
	if (verdict->arena)
		fay_arena_destroy(verdict->arena);
	*verdict = (struct fay_verdict){ 0 };
}

int fay_verify_smt2(const void *bytes, size_t size, const struct fay_policy *policy,
		    const char *smt2_dir, struct fay_verdict *verdict)
{
	int error;

	*verdict = (struct fay_verdict){ .outcome = FAY_EXHAUSTED };
	error = verify(bytes, size, policy, smt2_dir, verdict);
	if (!error)
		return 0;
	errno = error;
	return -1;
}
