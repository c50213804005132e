/* SPDX-License-Identifier: MIT */
/* The certificate of an image: of its probes as they are proved; or, where the prover refuses one,
 * of all by what the checker's machine can follow. */
#include <stdlib.h>
#include <string.h>

#include "prove_parts.h"

void fay_certify_proof(struct fay_run *run)
{
	if (!run->certificate || run->certify.refusal.rule != FAY_RULE_NONE)
		return;
	run->certify.cfg = &run->cfg;
	run->certify.graph = &run->graph;
	run->certify.hint = fay_hint_analysis;
	run->certify.context = &run->an;
	run->certify.mispredicted = !run->an.refine;
	fay_certify_probe(&run->certify, run->certificate);
}

void fay_certify_begin(struct fay_run *run, const void *bytes, size_t size)
{
	if (!run->certificate)
		return;
	run->certify = (struct fay_certify){ .subject = &run->subject,
					     .size = size,
					     .policy = run->policy };
	run->certify.refusal = fay_read_image(bytes, size, &run->subject);
	if (run->certify.refusal.rule != FAY_RULE_NONE)
		return;
	fay_certificate_begin(&run->subject, run->policy->speculation_confined, run->certificate);
}

/* Of nodes, in a search: what all plain images of the corpus take that are accepted so. */
#define RUNS_REFUSED 12000u
/* Of an early search: more than nine of ten take less. */
#define RUNS_EARLY 5000u

/* A walk without the invariant. */
static bool try_walk(struct fay_run *run, uint32_t i, bool mispredicted,
		     struct fay_bytes *certificate)
{
	struct fay_certify *c = &run->certify;
	uint64_t entry = run->image.layout_base + run->image.probes[i].code_offset;
	struct fay_graph graph = { 0 };
	bool ok = fay_graph_build_split(&graph, c->cfg, entry).rule == FAY_RULE_NONE;

	c->graph = &graph;
	c->mispredicted = mispredicted;
	ok = ok && fay_certify_probe(c, certificate);
	fay_graph_deinit(&graph);
	return ok;
}

/* The code with the places where indirect jumps go that were found now. What the run has stays as
 * it is, for a refusal is explained by it. */
static bool learn(struct fay_run *run, struct fay_cfg *cfg)
{
	struct fay_certify *c = &run->certify;
	bool ok =
		c->cfg == cfg ||
		(fay_cfg_build(cfg, run->arena, &run->image, run->deadline).rule == FAY_RULE_NONE &&
		 (!run->cfg.jump_count ||
		  fay_cfg_extend(cfg, run->cfg.jumps, run->cfg.jump_count, run->deadline).rule ==
			  FAY_RULE_NONE));

	c->cfg = cfg;
	ok = ok &&
	     fay_cfg_extend(cfg, c->found, c->found_count, run->deadline).rule == FAY_RULE_NONE;
	c->found_count = 0;
	return ok;
}

/* cfg: for what is learned of the code. */
static bool try_probe(struct fay_run *run, uint32_t i, bool mispredicted, struct fay_cfg *cfg,
		      struct fay_bytes *certificate)
{
	for (unsigned round = 0; round <= FAY_MAX_DISCOVERIES; round++) {
		if (run->deadline && fay_monotonic_ns() > run->deadline)
			return false;
		if (try_walk(run, i, mispredicted, certificate))
			return true;
		if (!run->certify.found_count || !learn(run, cfg))
			return false;
	}
	return false;
}

static bool find(struct fay_run *run, const void *bytes, size_t size, bool early,
		 struct fay_bytes *certificate)
{
	bool confined = run->policy->speculation_confined;
	struct fay_cfg cfg = { 0 };
	bool ok;

	run->certify = (struct fay_certify){ .subject = &run->subject,
					     .size = size,
					     .policy = run->policy,
					     .spent = run->certify.spent,
					     .cfg = &run->cfg,
					     .runs = early ? RUNS_EARLY : RUNS_REFUSED,
					     .early = early };
	ok = fay_read_image(bytes, size, &run->subject).rule == FAY_RULE_NONE;
	if (ok)
		fay_certificate_begin(&run->subject, confined, certificate);
	for (uint32_t i = 0; ok && i < run->image.probe_count; i++)
		ok = try_probe(run, i, false, &cfg, certificate) &&
		     (!confined || try_probe(run, i, true, &cfg, certificate));
	free(run->certify.found);
	fay_cfg_deinit(&cfg);
	run->certify.cfg = &run->cfg;
	return ok;
}

bool fay_certify_refused(struct fay_run *run, const void *bytes, size_t size,
			 struct fay_bytes *certificate)
{
	enum fay_rule rule = run->refusal.rule;

	/* no invariant was found or asked for; or it is not what was refused */
	if ((!run->an.in && rule != FAY_RULE_TRM_IRREDUCIBLE) || run->smt2 ||
	    rule == FAY_RULE_LIM_TIME || !strncmp(fay_rule_id(rule), "POL-", 4))
		return false;
	return find(run, bytes, size, false, certificate);
}

bool fay_certify_early(struct fay_run *run)
{
	bool ok = find(run, run->bytes, run->size, true, run->found);

	if (!ok)
		run->found->size = 0;
	return ok;
}
