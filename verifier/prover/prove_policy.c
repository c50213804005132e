/* SPDX-License-Identifier: MIT */
/* What a policy refuses of what is proved: the image's tables, its operations, a probe's costs. */
#include <string.h>

#include "prove_parts.h"

/* Whether one more violation is of use: the first decides, `all` (or NULL) lists them. */
static bool wanted(const struct fay_refusal *first, const struct fay_violations *all)
{
	return first->rule == FAY_RULE_NONE || (all && all->count < FAY_MAX_VIOLATIONS);
}

static void violated(struct fay_refusal *first, struct fay_violations *all, struct fay_refusal r)
{
	if (all && all->count < FAY_MAX_VIOLATIONS)
		all->at[all->count++] = r;
	if (first->rule == FAY_RULE_NONE)
		*first = r;
}

struct fay_refusal fay_policy_operations(const struct fay_run *run, struct fay_violations *all)
{
	const struct fay_policy *policy = run->policy;
	bool denied[OP_COUNT] = { false };
	struct fay_refusal first = { 0 };

	for (unsigned op = 0; op < OP_COUNT; op++)
		for (uint32_t i = 0; i < policy->denied_count &&
				     i < sizeof(policy->denied) / sizeof(policy->denied[0]);
		     i++)
			denied[op] |= !strcmp(fay_op_table[op].name, policy->denied[i]);
	for (uint32_t i = 0; policy->denied_count && i < run->cfg.insn_count && wanted(&first, all);
	     i++)
		if (denied[run->cfg.insns[i].op])
			violated(&first, all,
				 fay_refuse(run->arena, FAY_RULE_POL_OPERATION,
					    run->cfg.insns[i].address,
					    "the policy does not allow %s",
					    fay_op_table[run->cfg.insns[i].op].name));
	return first;
}

struct fay_refusal fay_policy_too_many(const struct fay_analysis *an, uint64_t instructions)
{
	return fay_refuse(an->arena, FAY_RULE_POL_INSTRUCTIONS,
			  an->image->layout_base + an->facts->code_offset,
			  "%llu instructions in the worst case; the policy allows %llu",
			  (unsigned long long)instructions,
			  (unsigned long long)an->policy->max_instructions);
}

struct fay_refusal fay_policy_costs(struct fay_analysis *an, struct fay_violations *all)
{
	const struct fay_policy *policy = an->policy;
	uint64_t entry = an->image->layout_base + an->facts->code_offset;
	struct fay_refusal first = { 0 };

	an->facts->worst_instructions = an->worst_instructions;
	an->facts->worst_stack = (uint64_t)an->deepest + 8;
	if (an->worst_instructions > policy->max_instructions)
		violated(&first, all, fay_policy_too_many(an, an->worst_instructions));
	for (unsigned bit = 0; bit < 32 && wanted(&first, all); bit++)
		if ((an->facts->event_fields & ~policy->allow_fields) >> bit & 1)
			violated(
				&first, all,
				fay_refuse(an->arena, FAY_RULE_POL_FIELD, entry,
					   "the probe reads event.%s; the policy does not allow it",
					   fay_event_field_name(bit) ? fay_event_field_name(bit)
								     : "?"));
	if (an->facts->worst_stack > policy->max_stack && wanted(&first, all))
		violated(&first, all,
			 fay_refuse(an->arena, FAY_RULE_POL_STACK, entry,
				    "%llu bytes of stack in the worst case; the policy allows %llu",
				    (unsigned long long)an->facts->worst_stack,
				    (unsigned long long)policy->max_stack));
	return first;
}

struct fay_refusal fay_policy_image(const struct fay_run *run, struct fay_violations *all)
{
	const struct fay_policy *policy = run->policy;
	const struct fay_image *image = &run->image;
	struct fay_refusal first = { 0 };

	if (image->header.local_size > policy->max_local ||
	    image->header.global_size > policy->max_global)
		violated(&first, all,
			 fay_refuse(run->arena, FAY_RULE_POL_STATE, 0,
				    "%u bytes of local and %u of global state; the policy allows "
				    "%llu and %llu",
				    image->header.local_size, image->header.global_size,
				    (unsigned long long)policy->max_local,
				    (unsigned long long)policy->max_global));
	for (uint32_t i = 0; i < image->probe_count && wanted(&first, all); i++)
		if (!(policy->allow_kinds >> (image->probes[i].kind & 31) & 1))
			violated(&first, all,
				 fay_refuse(run->arena, FAY_RULE_POL_KIND, 0,
					    "the policy does not allow probes of kind \"%s\"",
					    fay_probe_kind_name(image->probes[i].kind)));
	for (uint32_t i = 0; i < image->probe_count && wanted(&first, all); i++)
		if (!fay_policy_allows(policy, image->probes[i].pattern))
			violated(&first, all,
				 fay_refuse(run->arena, FAY_RULE_POL_TRACEPOINT, 0,
					    "the policy does not allow all that pattern \"%s\" can "
					    "match",
					    image->probes[i].pattern));
	return first;
}

void fay_facts_add(struct fay_probe_facts *facts, const struct fay_probe_facts *wrong)
{
	facts->event_fields |= wrong->event_fields;
	facts->arguments_used |= wrong->arguments_used;
	facts->clobbered_gprs |= wrong->clobbered_gprs;
	facts->helpers |= wrong->helpers;
	facts->clobbered_vectors |= wrong->clobbered_vectors;
	facts->clobbers_upper |= wrong->clobbers_upper;
	facts->uses_mxcsr |= wrong->uses_mxcsr;
	facts->aligned_stack |= wrong->aligned_stack;
	facts->cpu_features |= wrong->cpu_features;
}
