/* SPDX-License-Identifier: MIT */
/*
 * Everything that is refused of an image, not the first thing alone. The verdict was made; a second
 * run, whose verdict nobody sees, goes on where that one ended: what the policy says of tables is
 * listed and no longer asked for, each probe is tried, each obligation is asked that is left open,
 * as if the others held. Loops without a bound: one a probe. Code that cannot be decoded ends it.
 */
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "verifier/prover/loops/loops.h"

#define OTHERS_MAX 64u

struct others {
	struct fay_verdict *verdict; /* theirs, and the arena for texts */
	const struct fay_policy *policy;
	const struct fay_image *image; /* as the second run read it */
};

static const char *keep(const struct others *o, const char *text)
{
	return text ? fay_arena_printf(o->verdict->arena, "%s", text) : NULL;
}

static bool same(const struct fay_rejection *a, const struct fay_rejection *b)
{
	bool code = a->function || b->function;

	return a->rule == b->rule && a->text_offset == b->text_offset &&
	       !a->function == !b->function &&
	       ((code && strncmp(fay_rule_id(a->rule), "POL-", 4) != 0) ||
		(a->what && b->what && !strcmp(a->what, b->what)));
}

static bool full(const struct others *o)
{
	return o->verdict->other_count == OTHERS_MAX;
}

static bool listed(const struct others *o, const struct fay_rejection *r)
{
	bool found = same(&o->verdict->rejection, r);

	for (uint32_t i = 0; !found && i < o->verdict->other_count; i++)
		found = same(&o->verdict->others[i], r);
	return found;
}

static void describe(const struct others *o, const struct fay_refusal *refusal,
		     struct fay_rejection *r)
{
	*r = (struct fay_rejection){ 0 };
	fay_rejection_fill(o->verdict->arena, o->image, refusal, r);
}

static void add(struct others *o, const struct fay_refusal *refusal)
{
	struct fay_rejection r;

	describe(o, refusal, &r);
	if (refusal->rule == FAY_RULE_NONE || full(o) || listed(o, &r))
		return;
	r.what = keep(o, r.what);
	r.missing = keep(o, r.missing);
	r.function = keep(o, r.function);
	r.source_file = keep(o, r.source_file);
	o->verdict->others[o->verdict->other_count++] = r;
}

static void add_all(struct others *o, const struct fay_violations *all)
{
	for (uint32_t i = 0; i < all->count; i++)
		add(o, &all->at[i]);
}

/* What the probe in hand costs and reads, under the policy that was asked for. Not `whole`: some
 * way ends where something is refused, so what the rest of it costs is not known, only fields. */
static void add_costs(struct others *o, struct fay_run *run, bool whole)
{
	const struct fay_policy *loosened = run->an.policy;
	struct fay_violations all = { 0 };

	run->an.policy = o->policy;
	fay_policy_costs(&run->an, &all);
	run->an.policy = loosened;
	for (uint32_t i = 0; i < all.count; i++)
		if (whole || all.at[i].rule == FAY_RULE_POL_FIELD)
			add(o, &all.at[i]);
}

/* Calls of helpers that the policy does not allow: those through a slot, else the probe's entry. */
static void add_helpers(struct others *o, struct fay_run *run)
{
	const struct fay_probe_facts *facts = run->an.facts;
	uint64_t denied = facts->helpers & ~o->policy->allow_helpers;

	for (unsigned helper = 0; helper < FAY_HELPER_COUNT; helper++) {
		struct fay_refusal r =
			fay_refuse(run->arena, FAY_RULE_POL_HELPER,
				   run->image.layout_base + facts->code_offset,
				   "the policy does not allow %s", fay_helper_name(helper));
		bool placed = false;

		for (uint32_t i = 0; denied >> helper & 1 && i < run->cfg.insn_count; i++) {
			const struct fay_insn *insn = &run->cfg.insns[i];

			if (insn->op != OP_CALL_SLOT ||
			    fay_image_slot(&run->image, insn->target) != (int)helper)
				continue;
			placed = true;
			r.address = insn->address;
			add(o, &r);
		}
		if (denied >> helper & 1 && !placed)
			add(o, &r);
	}
}

static void proved(void *context, struct fay_run *run)
{
	struct others *o = context;

	o->image = &run->image;
	add_costs(o, run, true);
	add_helpers(o, run);
}

/* What else is open in the probe in hand. The solver is asked of each place once. */
static void add_obligations(struct others *o, struct fay_run *run)
{
	struct fay_analysis *an = &run->an;
	struct fay_model *model = calloc(1, sizeof(*model));
	bool mispredicted = run->refused == REFUSED_SPECULATION;

	for (uint32_t i = 0; model && i < an->pending_count && !full(o); i++) {
		const struct fay_obligation *open = &an->pending[i];
		struct fay_refusal r = mispredicted ? fay_speculation_refusal(an, open)
						    : fay_obligation_refusal(an, open);
		struct fay_rejection known;

		if (mispredicted && open->goal == GOAL_DIVIDE)
			continue;
		describe(o, &r, &known);
		if (listed(o, &known))
			continue;
		if (mispredicted || fay_smt_ask(an, open, model, NULL) != ANSWER_PROVED)
			add(o, &r);
	}
	free(model);
}

static void refused(void *context, struct fay_run *run)
{
	struct others *o = context;
	struct fay_refusal r;

	add(o, &run->refusal);
	if (run->refused == REFUSED_OBLIGATION || run->refused == REFUSED_SPECULATION)
		add_obligations(o, run);
	if (run->refused == REFUSED_OBLIGATION) {
		run->an.ask_bounds = true;
		r = fay_loops_bound(&run->an);
		add(o, &r);
	}
	if (run->refused == REFUSED_OBLIGATION || run->refusal.rule == FAY_RULE_POL_INSTRUCTIONS) {
		add_costs(o, run, run->refused != REFUSED_OBLIGATION);
		add_helpers(o, run);
	}
}

/* The policy's say on the tables and on single instructions. */
static void add_tables(struct others *o, struct fay_run *run)
{
	const struct fay_policy *loosened = run->policy;
	struct fay_violations all = { 0 };

	run->policy = o->policy;
	fay_policy_image(run, &all);
	add_all(o, &all);
	all.count = 0;
	fay_policy_operations(run, &all);
	add_all(o, &all);
	run->policy = loosened;
}

/* Without what add_tables(), add_costs() and add_helpers() look at. The limit of instructions
 * stays: by it the prover knows how good a bound must be. */
static void loosen(struct fay_policy *policy)
{
	struct fay_policy standard;

	fay_policy_default(&standard);
	policy->max_local = standard.max_local;
	policy->max_global = standard.max_global;
	policy->max_stack = UINT64_MAX;
	policy->allow_helpers = standard.allow_helpers;
	policy->allow_kinds = standard.allow_kinds;
	policy->allow_fields = standard.allow_fields;
	policy->pattern_count = policy->denied_count = 0;
}

void fay_others_fill(const void *bytes, size_t size, const struct fay_policy *policy,
		     struct fay_verdict *verdict)
{
	struct others o = { .verdict = verdict, .policy = policy };
	struct fay_observer observer = { .proved = proved, .context = &o };
	struct fay_policy loosened = *policy;
	struct fay_verdict unseen;
	struct fay_run *run;

	if (verdict->outcome == FAY_ACCEPTED || !verdict->probe_count || !verdict->arena)
		return;
	verdict->others = fay_arena_alloc(verdict->arena, OTHERS_MAX * sizeof(*verdict->others));
	if (!verdict->others)
		return;
	loosen(&loosened);
	run = fay_prove(bytes, size, &loosened, NULL, NULL, &observer, &unseen);
	if (run) {
		o.image = &run->image;
		add_tables(&o, run);
		if (unseen.outcome != FAY_ACCEPTED)
			refused(&o, run);
		fay_prove_rest(run, refused, &o);
		fay_run_end(run);
	}
	fay_verdict_deinit(&unseen);
}
