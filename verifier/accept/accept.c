/* SPDX-License-Identifier: MIT */
/* Images that bring a certificate: the checker decides, and its facts become a verdict. */
#include <stdlib.h>
#include <string.h>

#include "accept.h"
#include "verifier/image/image.h"
#include "verifier/image/sha256.h"

#define ARENA_BYTES ((size_t)512 << 20)

/* *memory: what the result lies in, to be freed. */
static bool check(const void *bytes, size_t size, const struct fay_policy *policy,
		  struct fay_probe_facts *facts, struct check_result *result, void **memory)
{
	*memory = malloc(check_room(size));
	*result = (struct check_result){ .refusal = { FAY_RULE_LIM_RESOURCE, 0, "out of memory" } };
	if (*memory)
		check_image(bytes, size, NULL, 0, policy, *memory, check_room(size), facts, result);
	return result->refusal.rule == FAY_RULE_NONE;
}

bool fay_accept_check(const void *bytes, size_t size, const struct fay_policy *policy,
		      struct fay_probe_facts *facts, struct check_result *result)
{
	void *memory;
	bool ok = check(bytes, size, policy, facts, result, &memory);

	result->jumps = NULL;
	result->jump_count = 0;
	free(memory);
	return ok;
}

bool fay_accept_layout(struct fay_arena *arena, const struct check_subject *s,
		       struct fay_layout *layout)
{
	uint8_t *bytes = fay_arena_alloc(arena, s->span);

	if (!bytes)
		return false;
	memset(bytes, 0, s->span);
	memcpy(bytes + (s->text.start - s->base), s->text.bytes, s->text.size);
	if (s->rodata.size)
		memcpy(bytes + (s->rodata.start - s->base), s->rodata.bytes, s->rodata.size);
	*layout = (struct fay_layout){ .bytes = bytes,
				       .size = s->span,
				       .code_offset = (uint32_t)(s->text.start - s->base),
				       .code_size = (uint32_t)s->text.size,
				       .slot_count = s->slot_count };
	for (uint32_t i = 0; i < s->slot_count; i++) {
		layout->slots[i].offset = (uint32_t)(s->slots[i].address - s->base);
		layout->slots[i].helper = s->slots[i].helper;
	}
	fay_sha256(bytes, s->span, layout->sha256);
	return true;
}

static int compare_jumps(const void *a, const void *b)
{
	const struct fay_verdict_jump *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* Where tables lead, in order and each once. False: no memory. */
static bool tell_jumps(struct fay_arena *arena, const struct check_result *result,
		       struct fay_verdict *verdict)
{
	uint32_t count = result->jump_count, base = verdict->layout.code_offset;
	struct fay_verdict_jump *jumps = fay_arena_alloc(arena, (count + 1u) * sizeof(*jumps));

	if (!jumps)
		return false;
	for (uint32_t i = 0; i < count; i++)
		jumps[i] = (struct fay_verdict_jump){ base + result->jumps[i].from,
						      base + result->jumps[i].to };
	qsort(jumps, count, sizeof(*jumps), compare_jumps);
	verdict->jumps = jumps;
	for (uint32_t i = 0; i < count; i++)
		if (!i || compare_jumps(&jumps[verdict->jump_count - 1], &jumps[i]))
			jumps[verdict->jump_count++] = jumps[i];
	return true;
}

/* The verdict, in `arena`, on an image that the checker accepts. */
static bool tell(struct fay_arena *arena, const void *bytes, size_t size,
		 const struct check_subject *subject, const struct fay_probe_facts *facts,
		 const struct check_result *result, struct fay_verdict *verdict)
{
	struct fay_image image;
	struct fay_verdict v = { .outcome = FAY_ACCEPTED,
				 .probe_count = result->probe_count,
				 .instructions = result->instructions,
				 .certified = true,
				 .arena = arena };

	if (fay_image_parse(arena, bytes, size, &image).rule != FAY_RULE_NONE ||
	    image.probe_count != result->probe_count ||
	    image.schema.local_size != subject->local_size ||
	    image.schema.global_size != subject->global_size ||
	    image.schema.state_count != subject->state_count ||
	    !fay_accept_layout(arena, subject, &v.layout) || !tell_jumps(arena, result, &v) ||
	    memcmp(v.layout.sha256, image.layout.sha256, sizeof(v.layout.sha256)))
		return false;
	v.schema = image.schema;
	v.probes = image.probes;
	for (uint32_t i = 0; i < image.probe_count; i++) {
		const char *pattern = image.probes[i].pattern; /* a copy of the file's */

		if (strcmp(pattern, facts[i].pattern) != 0)
			return false;
		v.probes[i] = facts[i];
		v.probes[i].pattern = pattern;
	}
	fay_sha256(bytes, size, v.image_sha256);
	*verdict = v;
	return true;
}

bool fay_accept_certified(const void *bytes, size_t size, const struct fay_policy *policy,
			  struct fay_verdict *verdict)
{
	uint64_t begin = fay_monotonic_ns();
	struct check_subject subject;
	struct check_result result;
	struct fay_probe_facts *facts;
	struct fay_arena *arena;
	void *memory = NULL;
	bool ok;

	if (!policy || !policy->allow_certificates)
		return false;
	if (size > FAY_IMAGE_MAX_FILE || check_parse(bytes, size, &subject).rule != FAY_RULE_NONE ||
	    !subject.certificate.size)
		return false;
	facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	arena = fay_arena_create(ARENA_BYTES);
	ok = facts && arena && check(bytes, size, policy, facts, &result, &memory) &&
	     tell(arena, bytes, size, &subject, facts, &result, verdict);
	free(memory);
	free(facts);
	if (ok)
		verdict->nanoseconds = fay_monotonic_ns() - begin;
	else if (arena)
		fay_arena_destroy(arena);
	return ok;
}
