/* SPDX-License-Identifier: MIT */
/* The checker's main line: image, certificate, one probe after the other. */
#include "verifier/image/sha256.h"
#include "walk.h"

void check_fingerprint(const struct check_subject *s, uint8_t hash[FAY_CERTIFICATE_HASH])
{
	struct {
		uint8_t text[32], rodata[32];
		uint64_t numbers[6];
		uint8_t hash[FAY_EXTENSION_HASH]; /* of extensions only */
	} all = { .numbers = { s->text.start, s->text.size, s->rodata.start, s->rodata.size,
			       s->local_size, s->global_size } };
	uint8_t whole[32];

	fay_sha256(s->text.bytes, s->text.size, all.text);
	fay_sha256(s->rodata.bytes, s->rodata.size, all.rodata);
	if (s->hash.size)
		memcpy(all.hash, s->hash.bytes, sizeof(all.hash));
	fay_sha256((const uint8_t *)&all, sizeof(all) - (s->hash.size ? 0 : sizeof(all.hash)),
		   whole);
	memcpy(hash, whole, FAY_CERTIFICATE_HASH);
}

static bool header(struct walk *w)
{
	struct reader *r = &w->certificate;
	uint8_t hash[FAY_CERTIFICATE_HASH];

	if (r->size < FAY_CERTIFICATE_HEADER || memcmp(r->bytes, FAY_CERTIFICATE_MAGIC, 4) ||
	    r->bytes[4] != FAY_CERTIFICATE_VERSION || r->bytes[5] > CERTIFICATE_CONFINED)
		return walk_refuse(w, FAY_RULE_CRT_FORMAT, 0,
				   "no certificate of a version that is known");
	check_fingerprint(w->subject, hash);
	if (memcmp(r->bytes + 6, hash, sizeof(hash)))
		return walk_refuse(w, FAY_RULE_CRT_FORMAT, 6,
				   "the certificate is for another image");
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

/* The image is for this interface, and has no more local state than that allows. */
static struct check_refusal check_host(const struct check_subject *s)
{
	struct check_refusal refusal = { FAY_RULE_IMG_TABLE, 0, "the image is for another host" };
	uint8_t hash[FAY_EXTENSION_HASH];

	fay_sha256((const uint8_t *)s->interface, sizeof(*s->interface), hash);
	if (memcmp(s->hash.bytes, hash, sizeof(hash)))
		return refusal;
	for (uint32_t i = 0; i < s->interface->region_count; i++)
		if (s->interface->region[i].extent == FAY_EXTENT_LOCAL &&
		    s->local_size > s->interface->region[i].size)
			return (struct check_refusal){ FAY_RULE_POL_STATE, 0,
						       "more state than the host allows" };
	return (struct check_refusal){ 0 };
}

void check_image(const uint8_t *image, size_t size, const uint8_t *certificate,
		 size_t certificate_size, const struct fay_policy *policy, void *memory,
		 size_t memory_size, struct fay_probe_facts *facts, struct check_result *result)
{
	check_extension(&check_probe_interface, image, size, certificate, certificate_size, policy,
			memory, memory_size, facts, result);
}

void check_extension(const struct fay_interface *interface, const uint8_t *image, size_t size,
		     const uint8_t *certificate, size_t certificate_size,
		     const struct fay_policy *policy, void *memory, size_t memory_size,
		     struct fay_probe_facts *facts, struct check_result *result)
{
	bool probes = interface == &check_probe_interface;
	struct check_subject *s = &result->subject;
	uint8_t *at = memory;
	struct walk *w = take(&at, &memory_size, sizeof(*w));

	memset(result, 0, sizeof(*result));
	result->refusal = (struct check_refusal){ FAY_RULE_LIM_RESOURCE, 0, "too little memory" };
	if (!w)
		return;
	result->refusal = (struct check_refusal){ FAY_RULE_IMG_TABLE, 0, "no host interface" };
	if (probes || check_interface(interface))
		result->refusal = check_parse_extension(image, size, interface, s);
	if (result->refusal.rule == FAY_RULE_NONE && !probes)
		result->refusal = check_host(s);
	if (result->refusal.rule == FAY_RULE_NONE)
		result->refusal = check_policy(s, policy);
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
