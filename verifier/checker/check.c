/* SPDX-License-Identifier: MIT */
/* The checker's main line: what was read, certificate, one probe after the other. */
#include "walk.h"

bool check_is_certificate(const uint8_t *bytes, size_t size)
{
	return size >= FAY_CERTIFICATE_HEADER && !memcmp(bytes, FAY_CERTIFICATE_MAGIC, 4) &&
	       bytes[4] == FAY_CERTIFICATE_VERSION && bytes[5] <= CERTIFICATE_CONFINED;
}

static bool header(struct walk *w)
{
	struct reader *r = &w->certificate;

	if (!check_is_certificate(r->bytes, r->size))
		return walk_refuse(w, FAY_RULE_CRT_FORMAT, 0,
				   "no certificate of a version that is known");
	if (w->policy->speculation_confined && r->bytes[5] != CERTIFICATE_CONFINED)
		return walk_refuse(w, FAY_RULE_SPC_BRANCH, 5,
				   "the certificate does not confine speculation");
	r->at = FAY_CERTIFICATE_HEADER;
	return true;
}

static void deny(struct walk *w)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		for (uint32_t i = 0; i < w->policy->denied_count && i < 32; i++)
			if (check_matches(fay_op_table[op].name, w->policy->denied[i]))
				w->denied[op / 64] |= (uint64_t)1 << op % 64;
}

/* The memory's next `size` bytes, zeroed, in multiples of 16. */
static void *take(uint8_t **memory, size_t *left, size_t size)
{
	uint8_t *at = *memory;

	size = (size + 15) & ~(size_t)15;
	if (size > *left)
		return NULL;
	memset(at, 0, size);
	*memory += size;
	*left -= size;
	return at;
}

/* What is read where only a mispredicted way leads is a fact, too: the event must be filled there,
 * arguments passed, and the CPU have the instruction. */
static bool both_walks(struct walk *w, uint64_t entry, struct fay_probe_facts *facts)
{
	w->m.refine = w->t.refine = true;
	if (!walk_probe(w, entry, facts))
		return false;
	w->m.refine = w->t.refine = false;
	return (w->certificate.bytes[5] == CERTIFICATE_PLAIN || walk_probe(w, entry, facts)) &&
	       walk_limits(w, facts);
}

/* What was read of the image holds, is no more than the host has room for, and allowed. */
static struct check_refusal admit(const uint8_t *image, size_t size, const struct check_subject *s,
				  const struct fay_policy *policy)
{
	const struct fay_interface *i = s->interface;
	struct check_refusal refusal = check_read(image, size, s);

	if (refusal.rule == FAY_RULE_NONE && i->confined && !policy->speculation_confined)
		refusal = (struct check_refusal){ FAY_RULE_SPC_BRANCH, 0, "the host confines it" };
	for (uint32_t k = 0; refusal.rule == FAY_RULE_NONE && k < i->region_count; k++)
		if (i->region[k].extent == FAY_EXTENT_LOCAL && s->local_size > i->region[k].size)
			refusal = (struct check_refusal){ FAY_RULE_POL_STATE, 0,
							  "more state than the host allows" };
	return refusal.rule == FAY_RULE_NONE ? check_policy(s, policy) : refusal;
}

void check_parts(const uint8_t *image, size_t size, const uint8_t *certificate,
		 size_t certificate_size, const struct fay_policy *policy, void *memory,
		 size_t memory_size, struct fay_probe_facts *facts, struct check_result *result)
{
	const struct check_subject *s = &result->subject;
	uint8_t *at = memory;
	struct walk *w = take(&at, &memory_size, sizeof(*w));

	memset(result, 0, offsetof(struct check_result, subject));
	result->refusal = (struct check_refusal){ FAY_RULE_LIM_RESOURCE, 0, "too little memory" };
	if (!w)
		return;
	result->refusal = admit(image, size, s, policy);
	if (result->refusal.rule != FAY_RULE_NONE)
		return;
	result->probe_count = s->probe_count;
	w->subject = w->m.subject = w->t.subject = s;
	w->policy = w->m.policy = w->t.policy = policy;
	w->m.shared = w->t.shared = &w->shared;
	w->certificate.bytes = certificate ? certificate : s->certificate.bytes;
	w->certificate.size = (uint32_t)(certificate ? certificate_size : s->certificate.size);
	w->starts = take(&at, &memory_size, s->text.size / 8 + 1);
	w->insides = take(&at, &memory_size, s->text.size / 8 + 1);
	if (!w->starts || !w->insides) {
		walk_refuse(w, FAY_RULE_LIM_RESOURCE, 0, "too little memory");
	} else if (header(w)) {
		deny(w);
		w->memory = at;
		w->jumps = (struct check_jump *)(at + (memory_size & ~(size_t)7));
		for (uint32_t i = 0; i < s->probe_count; i++) {
			struct check_probe probe = check_probe(s, i);

			facts[i] = (struct fay_probe_facts){ .pattern = probe.pattern,
							     .kind = probe.kind,
							     .parameter = probe.parameter,
							     .code_offset = (uint32_t)(probe.code -
										       s->base) };
			if (!both_walks(w, probe.code, &facts[i]))
				break;
		}
		if (w->m.refusal.rule == FAY_RULE_NONE && w->certificate.at != w->certificate.size)
			walk_refuse(w, FAY_RULE_CRT_FORMAT, w->certificate.at,
				    "something follows the certificate");
	}
	result->instructions = w->instructions;
	result->jumps = w->jumps;
	result->jump_count = w->jump_count;
	result->refusal = w->m.refusal.rule != FAY_RULE_NONE ? w->m.refusal : w->t.refusal;
}
