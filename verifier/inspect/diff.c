/* SPDX-License-Identifier: MIT */
/* What the probes of a new version can do, against all of the old version that cover them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "verifier/explain/report_names.h"

void fay_diff_add(struct fay_diff *d, bool grew, const char *kind, const char *where,
		  const char *before, const char *after)
{
	if (d->change_count == d->change_room) {
		uint32_t room = d->change_room ? 2 * d->change_room : 64;
		void *grown = realloc(d->changes, room * sizeof(*d->changes));

		if (!grown) {
			d->failed = true;
			return;
		}
		d->changes = grown;
		d->change_room = room;
	}
	d->failed |= !kind || !where || !before || !after;
	d->grew |= grew;
	d->changes[d->change_count++] = (struct fay_change){ grew, kind, where, before, after };
}

static const char *number(struct fay_diff *d, uint64_t n)
{
	return n == UINT64_MAX ? "not bounded"
			       : fay_arena_printf(d->new->run->arena, "%" PRIu64, n);
}

/* A number that any compiler changes. */
static void compare_number(struct fay_diff *d, const char *kind, const char *where, uint64_t before,
			   uint64_t after)
{
	uint64_t limit = before, slack = d->factor > 1 ? FAY_DIFF_SLACK : 0;

	if (__builtin_mul_overflow(limit, d->factor, &limit))
		limit = UINT64_MAX;
	if (limit - before < slack)
		limit = before > UINT64_MAX - slack ? UINT64_MAX : before + slack;
	if (before != after)
		fay_diff_add(d, after > limit, kind, where, number(d, before), number(d, after));
}

/* Each bit that the new one has and the old one has not. */
static void compare_masks(struct fay_diff *d, const char *kind, const char *where, uint32_t before,
			  uint32_t after, const char *(*name)(unsigned), bool chosen)
{
	for (unsigned i = 0; i < 32; i++)
		if ((after & ~before) >> i & 1)
			fay_diff_add(d, !chosen || d->factor == 1, kind, where, "", name(i));
}

/* Whether all places of probe `b` are places of `a`: then what `a` could do was possible there. A
 * timer that comes less often is one that came more often. */
static bool covers(const struct fay_probe_facts *a, const struct fay_probe_facts *b,
		   struct fay_policy *policy)
{
	if (!a->analysed || a->kind != b->kind)
		return false;
	if (a->kind == FAY_PROBE_TIMER ? a->parameter > b->parameter : a->parameter != b->parameter)
		return false;
	if (!strcmp(a->pattern, b->pattern))
		return true;
	if (strlen(a->pattern) >= sizeof(policy->patterns[0]) || !*a->pattern || !*b->pattern)
		return false;
	strcpy(policy->patterns[0], a->pattern);
	policy->pattern_count = 1;
	return fay_policy_allows(policy, b->pattern);
}

/* What the probes of `in` that cover `of` can do together. False: there is none. */
static bool together(const struct fay_inspected *in, const struct fay_probe_facts *of,
		     struct fay_policy *policy, struct fay_probe_facts *sum)
{
	bool any = false;

	*sum = (struct fay_probe_facts){ 0 };
	for (uint32_t i = 0; i < in->verdict.probe_count; i++) {
		const struct fay_probe_facts *p = &in->verdict.probes[i];

		if (!covers(p, of, policy))
			continue;
		any = true;
		sum->event_fields |= p->event_fields;
		sum->helpers |= p->helpers;
		sum->clobbered_gprs |= p->clobbered_gprs;
		sum->clobbered_vectors |= p->clobbered_vectors;
		sum->cpu_features |= p->cpu_features;
		sum->uses_mxcsr |= p->uses_mxcsr;
		if (p->worst_instructions > sum->worst_instructions)
			sum->worst_instructions = p->worst_instructions;
		if (p->worst_stack > sum->worst_stack)
			sum->worst_stack = p->worst_stack;
	}
	return any;
}

/* Whether the old version has the probe, but nothing is known of it. */
static bool unproved(const struct fay_inspected *in, const struct fay_probe_facts *of)
{
	for (uint32_t i = 0; i < in->verdict.probe_count; i++)
		if (!in->verdict.probes[i].analysed && in->verdict.probes[i].kind == of->kind &&
		    !strcmp(in->verdict.probes[i].pattern, of->pattern))
			return true;
	return false;
}

static void compare_probe(struct fay_diff *d, const struct fay_probe_facts *after,
			  struct fay_policy *policy)
{
	struct fay_probe_facts before;
	const char *where = fay_arena_printf(d->new->run->arena, "%s (%s)", after->pattern,
					     kind_name(after->kind));
	bool known = together(d->old, after, policy, &before);

	if (!known)
		fay_diff_add(d, true, "probe", where, unproved(d->old, after) ? "not proved" : "",
			     unproved(d->old, after) ? "there" : "new");
	if (!after->analysed) {
		fay_diff_add(d, true, "proof", where, known ? "proved" : "",
			     "not proved: what it does is not known");
		return;
	}
	compare_masks(d, "field", where, before.event_fields, after->event_fields, field_name,
		      false);
	compare_masks(d, "helper", where, before.helpers, after->helpers, helper_name, false);
	if (!known)
		return;
	compare_number(d, "instructions", where, before.worst_instructions,
		       after->worst_instructions);
	compare_number(d, "stack", where, before.worst_stack, after->worst_stack);
	compare_masks(d, "register", where, before.clobbered_gprs, after->clobbered_gprs, gpr_name,
		      true);
	compare_masks(d, "vector", where, before.clobbered_vectors, after->clobbered_vectors,
		      vector_name, true);
	compare_masks(d, "cpu_feature", where, before.cpu_features, after->cpu_features,
		      feature_name, true);
	if (after->uses_mxcsr && !before.uses_mxcsr)
		fay_diff_add(d, d->factor == 1, "floating_point", where, "no", "yes");
}

/* The most rounds that all loops around one block make together. */
static uint64_t rounds(const struct fay_inspected *in)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < in->block_count; i++)
		if (in->blocks[i].head && in->blocks[i].runs > most)
			most = in->blocks[i].runs;
	return most;
}

/* Probes that are gone: nothing grows by that. */
static void tell_gone(struct fay_diff *d)
{
	for (uint32_t i = 0; i < d->old->verdict.probe_count; i++) {
		const struct fay_probe_facts *before = &d->old->verdict.probes[i];
		bool gone = true;

		for (uint32_t k = 0; gone && k < d->new->verdict.probe_count; k++)
			gone = d->new->verdict.probes[k].kind != before->kind ||
			       strcmp(d->new->verdict.probes[k].pattern, before->pattern) != 0;
		if (gone)
			fay_diff_add(d, false, "probe",
				     fay_arena_printf(d->new->run->arena, "%s (%s)",
						      before->pattern, kind_name(before->kind)),
				     "there", "gone");
	}
}

void fay_diff_probes(struct fay_diff *d)
{
	struct fay_policy policy = { 0 };

	for (uint32_t i = 0; i < d->new->verdict.probe_count; i++)
		compare_probe(d, &d->new->verdict.probes[i], &policy);
	tell_gone(d);
	compare_number(d, "loop", "", rounds(d->old), rounds(d->new));
}
