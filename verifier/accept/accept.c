/* SPDX-License-Identifier: MIT */
/* Images that bring a certificate: the checker decides, and its facts become a verdict. */
#include <stdlib.h>
#include <string.h>

#include "accept.h"
#include "verifier/image/sha256.h"

#define ARENA_BYTES ((size_t)512 << 20)

/* A certificate beside the image; at NULL: the one that the image brings. */
struct fay_given {
	const uint8_t *at;
	size_t size;
};
static const struct fay_given brought;

/* What the file says, for as long as the verdict. */
static const char *copy(struct fay_arena *arena, const char *text)
{
	return fay_arena_printf(arena, "%s", text);
}

/* *memory: what the result lies in, to be freed. */
static bool check(const void *bytes, size_t size, const struct fay_given *given,
		  const struct fay_policy *policy, struct fay_probe_facts *facts,
		  struct check_result *result, void **memory)
{
	size_t room = check_room(size + given->size);

	*memory = malloc(room);
	*result = (struct check_result){ .refusal = { FAY_RULE_LIM_RESOURCE, 0, "out of memory" } };
	if (*memory)
		check_image(bytes, size, given->at, given->size, policy, *memory, room, facts,
			    result);
	return result->refusal.rule == FAY_RULE_NONE;
}

bool fay_accept_check(const void *bytes, size_t size, const struct fay_policy *policy,
		      struct fay_probe_facts *facts, struct check_result *result)
{
	void *memory;
	bool ok = check(bytes, size, &brought, policy, facts, result, &memory);

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

/* The descriptors of the state. False: no memory. */
static bool tell_schema(struct fay_arena *arena, const struct check_subject *s,
			struct fay_schema *schema)
{
	*schema = (struct fay_schema){
		.local_size = s->local_size,
		.global_size = s->global_size,
		.state_count = s->state_count,
		.column_count = s->column_count,
		.states = fay_arena_alloc(arena, (s->state_count + 1) * sizeof(*schema->states)),
		.columns = fay_arena_alloc(arena, (s->column_count + 1) * sizeof(*schema->columns)),
	};
	if (!schema->states || !schema->columns)
		return false;
	for (uint32_t i = 0; i < s->state_count; i++) {
		struct fay_image_state of = check_state(s, i);
		struct fay_schema_state *to = &schema->states[i];

		*to = (struct fay_schema_state){ .kind = of.kind,
						 .scope = of.scope,
						 .offset = of.offset,
						 .size = of.size,
						 .rows = of.rows,
						 .row_size = of.row_size,
						 .first_column = of.first_column,
						 .keys = of.keys,
						 .values = of.values };
		to->name = copy(arena, fay_read_name(s, &s->states, i * sizeof(of), of.name));
		if (!to->name)
			return false;
	}
	for (uint32_t i = 0; i < s->column_count; i++) {
		struct fay_image_column of = fay_read_column(s, i);
		struct fay_schema_column *to = &schema->columns[i];

		*to = (struct fay_schema_column){ .type = of.type,
						  .merge = of.merge,
						  .offset = of.offset,
						  .size = of.size,
						  .param = { of.param[0], of.param[1] } };
		to->name = copy(arena, fay_read_name(s, &s->columns, i * sizeof(of), of.name));
		if (!to->name)
			return false;
	}
	return true;
}

/* The verdict, in `arena`, on an image that the checker accepts. */
static bool tell(struct fay_arena *arena, const void *bytes, size_t size,
		 const struct fay_probe_facts *facts, const struct check_result *result,
		 struct fay_verdict *verdict)
{
	struct fay_verdict v = { .outcome = FAY_ACCEPTED,
				 .probe_count = result->probe_count,
				 .instructions = result->instructions,
				 .certified = true,
				 .arena = arena };

	v.probes = fay_arena_alloc(arena, v.probe_count * sizeof(*v.probes));
	if (!v.probes || !tell_schema(arena, &result->subject, &v.schema) ||
	    !fay_accept_layout(arena, &result->subject, &v.layout) ||
	    !tell_jumps(arena, result, &v))
		return false;
	for (uint32_t i = 0; i < v.probe_count; i++) {
		v.probes[i] = facts[i];
		v.probes[i].pattern = copy(arena, facts[i].pattern);
		if (!v.probes[i].pattern)
			return false;
	}
	fay_sha256(bytes, size, v.image_sha256);
	*verdict = v;
	return true;
}

static bool accept(const void *bytes, size_t size, const struct fay_given *given,
		   const struct fay_policy *policy, struct fay_verdict *verdict)
{
	uint64_t begin = fay_monotonic_ns();
	struct check_result result;
	struct fay_probe_facts *facts;
	struct fay_arena *arena;
	void *memory = NULL;
	bool ok;

	if (size > FAY_IMAGE_MAX_FILE || given->size > FAY_IMAGE_MAX_FILE)
		return false;
	facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	arena = fay_arena_create(ARENA_BYTES);
	ok = facts && arena && check(bytes, size, given, policy, facts, &result, &memory) &&
	     tell(arena, bytes, size, facts, &result, verdict);
	free(memory);
	free(facts);
	if (ok)
		verdict->nanoseconds = fay_monotonic_ns() - begin;
	else if (arena)
		fay_arena_destroy(arena);
	return ok;
}

bool fay_accept_certified(const void *bytes, size_t size, const struct fay_policy *policy,
			  struct fay_verdict *verdict)
{
	return policy && policy->allow_certificates &&
	       accept(bytes, size, &brought, policy, verdict);
}

bool fay_accept_found(const void *bytes, size_t size, const uint8_t *certificate,
		      size_t certificate_size, const struct fay_policy *policy,
		      struct fay_verdict *verdict)
{
	struct fay_given given = { certificate, certificate_size };

	return certificate && accept(bytes, size, &given, policy, verdict);
}
