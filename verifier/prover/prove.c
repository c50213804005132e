/* SPDX-License-Identifier: MIT */
/*
 * The verifier's main line: parse, decode, and for each probe: graph, invariant, obligations, loop
 * bounds, policy. Any doubt is a rejection. docs/verifier.md argues why that is enough.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prove_parts.h"
#include "verifier/prover/fixpoint/fixpoint.h"
#include "verifier/prover/sweep/sweep.h"

#define ARENA_BYTES ((size_t)512 << 20)

static const struct fay_refusal fine;

/* placed: the image was read, and the refusal may have a place in it. */
static void reject(struct fay_run *run, bool placed, struct fay_refusal refusal)
{
	run->refused = REFUSED_PLAIN;
	run->refusal = refusal;
	run->placed = placed;
	run->verdict->outcome = refusal.outcome;
	run->verdict->rejection.rule = refusal.rule;
	run->verdict->rejection.outcome = refusal.outcome;
	run->verdict->rejection.what = refusal.what;
	run->verdict->rejection.missing = refusal.missing;
}

static void reject_obligation(struct fay_run *run, enum fay_refused refused,
			      const struct fay_obligation *o, struct fay_refusal refusal)
{
	reject(run, true, refusal);
	run->refused = refused;
	run->broken = o;
}

static void reject_memory(struct fay_run *run)
{
	reject(run, false, fay_refuse(run->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory"));
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

struct fay_refusal fay_speculation_refusal(const struct fay_analysis *an,
					   const struct fay_obligation *o)
{
	struct fay_refusal r = fay_obligation_refusal(an, o);

	r.rule = FAY_RULE_SPC_BRANCH;
	r.outcome = FAY_UNPROVED;
	r.missing = "a mask, a conditional move or an lfence between the branch and this "
		    "instruction";
	return r;
}

/* ---- one probe ---- */

/* Asks the solver for what the abstract values left open. False: rejected. */
static bool discharge(struct fay_run *run)
{
	struct fay_analysis *an = &run->an;

	run->model = calloc(1, sizeof(*run->model));
	if (!run->model) {
		reject_memory(run);
		return false;
	}
	for (uint32_t i = 0; i < an->pending_count; i++) {
		const struct fay_obligation *o = &an->pending[i];
		enum fay_answer answer = fay_smt_ask(an, o, run->model, run->smt2);

		if (answer != ANSWER_PROVED) {
			reject_obligation(run, REFUSED_OBLIGATION, o,
					  fay_obligation_refusal(an, o));
			if (answer == ANSWER_REFUTED)
				return false;
			free(run->model);
			run->model = NULL;
			return false;
		}
		run->verdict->obligations_by_solver++;
	}
	free(run->model);
	run->model = NULL;
	return true;
}

/* Every obligation as SMT-LIB 2, if that was asked for. */
static struct fay_refusal write_proof(struct fay_run *run)
{
	struct fay_analysis *an = &run->an;

	if (!run->smt2 || fay_proof_write(an, run->smt2))
		return fine;
	return an->refusal.rule != FAY_RULE_NONE
		       ? an->refusal
		       : fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, 0,
				    "out of memory while writing the proof");
}

static bool falls_short(struct fay_analysis *an)
{
	return an->pending_count || fay_loops_bound(an).rule != FAY_RULE_NONE;
}

struct fay_refusal fay_prove_invariant(struct fay_analysis *an)
{
	struct fay_refusal r;

	if ((!an->thorough && fay_sweep(an)) || an->refusal.rule != FAY_RULE_NONE)
		return an->refusal;
	r = fay_fixpoint(an);
	if (r.rule != FAY_RULE_NONE || !an->graph->loop_count || !falls_short(an))
		return r;
	r = fay_loops_templates(an);
	if (r.rule != FAY_RULE_NONE || !an->template_count)
		return r;
	fay_analysis_release(an);
	memset(an->visits, 0, an->graph->node_count * sizeof(*an->visits));
	return fay_fixpoint(an);
}

/* Invariant, obligations, bounds. False: rejected, or a certificate was found. */
static bool analyse(struct fay_run *run)
{
	struct fay_analysis *an = &run->an;
	struct fay_refusal r = fay_prove_invariant(an);

	if (r.rule == FAY_RULE_NONE) {
		run->verdict->obligations += an->obligation_count;
		if (run->found && !an->found_count && falls_short(an) && fay_certify_early(run))
			return false;
		if (!discharge(run))
			return false;
		an->ask_bounds = true;
		r = fay_loops_bound(an);
		/* the first attempt knew a bound */
		if (r.rule == FAY_RULE_TRM_LOOP && an->too_many)
			r = fay_policy_too_many(an, an->too_many);
	}
	if (r.rule == FAY_RULE_NONE)
		r = fay_policy_costs(an, NULL);
	if (r.rule == FAY_RULE_NONE)
		r = write_proof(run);
	if (r.rule != FAY_RULE_NONE && !an->found_count) {
		reject(run, true, r);
		if (r.rule == FAY_RULE_TRM_LOOP)
			run->refused = REFUSED_LOOP;
	}
	an->facts->analysed = r.rule == FAY_RULE_NONE;
	return r.rule == FAY_RULE_NONE;
}

/*
 * Guarantee 7: the same invariants and obligations once more with every branch taken either way
 * whatever its condition says, except for what an lfence has settled. What then cannot be shown in
 * bounds rests on a branch.
 */
static bool speculate(struct fay_run *run)
{
	struct fay_analysis *an = &run->an;
	struct fay_state **proved = an->in;
	struct fay_probe_facts scratch = *an->facts, *facts = an->facts;
	struct fay_refusal r;
	bool ok = true;

	an->in = calloc(an->graph->node_count, sizeof(struct fay_state *));
	if (!an->in) {
		an->in = proved;
		reject_memory(run);
		return false;
	}
	memset(an->visits, 0, an->graph->node_count * sizeof(*an->visits));
	an->refine = false;
	an->architectural = proved;
	an->facts = &scratch;
	r = fay_fixpoint(an);
	an->facts = facts;
	fay_facts_add(facts, &scratch);
	if (r.rule == FAY_RULE_NONE)
		r = fay_policy_costs(an, NULL);
	if (r.rule != FAY_RULE_NONE) {
		reject(run, true, r);
		ok = false;
	}
	for (uint32_t i = 0; ok && i < an->pending_count; i++) {
		struct fay_obligation *o = &an->pending[i];

		if (o->goal == GOAL_DIVIDE)
			continue; /* a division that faults is not retired */
		reject_obligation(run, REFUSED_SPECULATION, o, fay_speculation_refusal(an, o));
		ok = false;
	}
	if (ok) {
		r = write_proof(run);
		ok = r.rule == FAY_RULE_NONE;
		if (!ok)
			reject(run, true, r);
	}
	return ok;
}

/* The probe in hand. */
static void release(struct fay_run *run)
{
	struct fay_analysis *an = &run->an;

	fay_analysis_release(an);
	free(an->in);
	if (an->architectural) {
		an->in = an->architectural;
		fay_analysis_release(an);
		free(an->in);
	}
	free(an->visits);
	free(an->bounds);
	free(an->moves);
	free(an->current);
	free(an->branch);
	free(an->pending);
	free(an->templates);
	free(an->found);
	*an = (struct fay_analysis){ 0 };
	fay_graph_deinit(&run->graph);
	run->graph = (struct fay_graph){ 0 };
}

static bool verify_graph(struct fay_run *run, struct fay_probe_facts *facts,
			 const struct fay_thresholds *thresholds)
{
	uint32_t nodes = run->graph.node_count;

	run->an = (struct fay_analysis){
		.arena = run->arena,
		.image = &run->image,
		.policy = run->policy,
		.cfg = &run->cfg,
		.graph = &run->graph,
		.verdict = run->verdict,
		.cache = run->cache,
		.deadline = run->deadline,
		.thresholds = *thresholds,
		.refine = true,
		.facts = facts,
		.keep = run->certificate != NULL,
		/* they need all states */
		.thorough = run->smt2 || run->policy->speculation_confined,
		.in = calloc(nodes, sizeof(struct fay_state *)),
		.visits = calloc(nodes, sizeof(uint16_t)),
		.bounds = calloc(nodes, sizeof(uint64_t)),
		.moves = calloc(nodes, sizeof(uint64_t)),
		.current = fay_state_create(FAY_MAX_LOCATIONS),
		.branch = fay_state_create(FAY_MAX_LOCATIONS),
	};
	if (!run->an.in || !run->an.visits || !run->an.bounds || !run->an.moves ||
	    !run->an.current || !run->an.branch) {
		reject_memory(run);
		return false;
	}
	if (!analyse(run))
		return false;
	fay_certify_proof(run);
	if (run->policy->speculation_confined) {
		if (!speculate(run))
			return false;
		fay_certify_proof(run);
	}
	return true;
}

/* One attempt; *found are places of indirect jumps that the graph lacks: then nothing was decided.
 * If it was refused, the probe stays in hand. */
static bool attempt_probe(struct fay_run *run, struct fay_probe_facts *facts,
			  const struct fay_thresholds *thresholds, struct fay_jump **found,
			  uint32_t *found_count)
{
	uint64_t entry = run->image.layout_base + facts->code_offset;
	struct fay_refusal r;
	bool ok;

	/* Of many probes each may take little of what is looked at the clock for, but much in
	 * making its graph. */
	if (run->deadline && fay_monotonic_ns() > run->deadline)
		r = fay_refuse(run->arena, FAY_RULE_LIM_TIME, entry,
			       "time ran out before all probes were checked");
	else
		r = fay_graph_build(&run->graph, &run->cfg, entry);
	*found = NULL;
	*found_count = 0;
	if (r.rule != FAY_RULE_NONE) {
		reject(run, true, r);
		return false;
	}
	ok = verify_graph(run, facts, thresholds);
	*found = run->an.found;
	*found_count = run->an.found_count;
	run->an.found = NULL;
	if (!*found_count) {
		run->verdict->blocks += run->graph.node_count;
		run->verdict->loops += run->graph.loop_count;
	}
	if (ok && !*found_count && run->observer)
		run->observer->proved(run->observer->context, run);
	if (ok || *found_count)
		release(run);
	return ok;
}

static bool verify_probe(struct fay_run *run, struct fay_probe_facts *facts,
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
			r = fay_policy_operations(run, NULL); /* there is more code than before */
		if (r.rule != FAY_RULE_NONE) {
			reject(run, true, r);
			return false;
		}
	}
}

/* ---- the image ---- */

static bool report_jumps(struct fay_run *run)
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
		reject_memory(run);
	return jumps != NULL;
}

static void verify_image(struct fay_run *run, const void *bytes, size_t size)
{
	struct fay_refusal r = fay_image_parse(run->arena, bytes, size, &run->image);
	struct fay_thresholds *thresholds;
	bool ok = true;

	if (r.rule != FAY_RULE_NONE) {
		reject(run, false, r);
		return;
	}
	run->verdict->schema = run->image.schema;
	run->verdict->probe_count = run->image.probe_count;
	run->verdict->probes = run->image.probes;
	r = fay_policy_image(run, NULL);
	if (r.rule == FAY_RULE_NONE)
		r = fay_cfg_build(&run->cfg, run->arena, &run->image, run->deadline);
	if (r.rule == FAY_RULE_NONE)
		r = fay_policy_operations(run, NULL);
	run->verdict->instructions = run->cfg.insn_count;
	thresholds = fay_arena_alloc(run->arena, sizeof(*thresholds));
	if (r.rule == FAY_RULE_NONE && !thresholds)
		r = fay_refuse(run->arena, FAY_RULE_LIM_RESOURCE, 0, "out of memory");
	if (r.rule != FAY_RULE_NONE) {
		reject(run, true, r);
		return;
	}
	fay_thresholds_collect(thresholds, &run->image, &run->cfg);
	run->thresholds = thresholds;
	fay_certify_begin(run, bytes, size);
	for (uint32_t i = 0; ok && i < run->image.probe_count; i++) {
		run->probe = i;
		if (run->smt2)
			run->smt2->probe = i;
		ok = verify_probe(run, &run->image.probes[i], thresholds);
	}
	if (!ok || !report_jumps(run))
		return;
	run->verdict->outcome = FAY_ACCEPTED;
	run->verdict->layout = run->image.layout;
}

static struct fay_run *prove(const void *bytes, size_t size, const struct fay_policy *policy,
			     const char *smt2_dir, struct fay_bytes *certificate,
			     const struct fay_observer *observer, struct fay_bytes *found,
			     struct fay_verdict *verdict)
{
	uint64_t begin = fay_monotonic_ns();
	struct fay_run *run = calloc(1, sizeof(*run));

	*verdict = (struct fay_verdict){ .outcome = FAY_EXHAUSTED };
	verdict->rejection = (struct fay_rejection){ .rule = FAY_RULE_LIM_RESOURCE,
						     .outcome = FAY_EXHAUSTED,
						     .what = "out of memory" };
	if (run)
		run->arena = fay_arena_create(ARENA_BYTES);
	if (!run || !run->arena) {
		free(run);
		return NULL;
	}
	verdict->arena = run->arena;
	fay_policy_default(&run->standard);
	run->policy = policy ? policy : &run->standard;
	run->verdict = verdict;
	/* NULL: every question is asked */
	run->cache = fay_arena_alloc(run->arena, sizeof(*run->cache));
	run->begin = begin;
	run->deadline =
		run->policy->total_ms ? begin + run->policy->total_ms * (uint64_t)1000000 : 0;
	/* a larger one is refused for its size; its hash would take longer than all else */
	if (size <= FAY_IMAGE_MAX_FILE)
		fay_sha256(bytes, size, verdict->image_sha256);
	if (smt2_dir && fay_smt2_open(&run->files, smt2_dir, verdict))
		run->smt2 = &run->files;
	run->certificate = certificate;
	run->observer = observer;
	run->bytes = bytes;
	run->size = size;
	run->found = run->policy->speculation_confined ? NULL : found;
	verify_image(run, bytes, size);
	if (verdict->outcome == FAY_ACCEPTED)
		verdict->rejection = (struct fay_rejection){ 0 };
	return run;
}

struct fay_run *fay_prove(const void *bytes, size_t size, const struct fay_policy *policy,
			  const char *smt2_dir, struct fay_bytes *certificate,
			  const struct fay_observer *observer, struct fay_verdict *verdict)
{
	return prove(bytes, size, policy, smt2_dir, certificate, observer, NULL, verdict);
}

struct fay_run *fay_prove_or_find(const void *bytes, size_t size, const struct fay_policy *policy,
				  struct fay_bytes *found, struct fay_verdict *verdict)
{
	return prove(bytes, size, policy, NULL, NULL, NULL, found, verdict);
}

void fay_prove_rest(struct fay_run *run, void (*refused)(void *context, struct fay_run *run),
		    void *context)
{
	struct fay_verdict *decided = run->verdict, scratch = { .outcome = FAY_EXHAUSTED };

	if (decided->outcome == FAY_ACCEPTED || !run->thresholds)
		return;
	run->verdict = &scratch;
	for (uint32_t i = run->probe + 1; i < run->image.probe_count; i++) {
		release(run);
		free(run->model);
		run->model = NULL;
		run->probe = i;
		if (!verify_probe(run, &run->image.probes[i], run->thresholds))
			refused(context, run);
	}
	run->verdict = decided;
}

int fay_run_end(struct fay_run *run)
{
	struct fay_verdict *verdict = run->verdict;
	int error;

	release(run);
	free(run->model);
	fay_cfg_deinit(&run->cfg);
	if (run->smt2)
		fay_smt2_close(run->smt2, verdict);
	error = run->files.error ? run->files.error : run->files.truncated ? EFBIG : 0;
	verdict->nanoseconds = fay_monotonic_ns() - run->begin;
	free(run);
	return error;
}
