/* SPDX-License-Identifier: MIT */
/* The checker itself is asked about what was written, with the memory and the policy it will have:
 * what it refuses is not handed out. */
#include "certify_parts.h"

static uint64_t entry(const struct fay_certify *c)
{
	return c->cfg->insns[c->cfg->blocks[c->graph->nodes[0].block].first].address;
}

/* Walks through the part that begins at `begin`; `size` bytes of memory are left for it. */
static bool walk_part(struct fay_certify *c, struct walk *w, size_t begin,
		      const struct fay_bytes *out, uint8_t *memory, size_t size)
{
	struct fay_probe_facts facts = { 0 };

	w->subject = w->m.subject = w->t.subject = c->subject;
	w->policy = w->m.policy = w->t.policy = c->policy;
	w->m.shared = w->t.shared = &w->shared;
	w->m.refine = w->t.refine = !c->mispredicted;
	w->certificate = (struct reader){ out->at, (uint32_t)begin, (uint32_t)out->size, false };
	w->memory = memory;
	w->jumps = (struct check_jump *)(memory + (size & ~(size_t)7));
	return walk_probe(w, entry(c), &facts) && (c->mispredicted || walk_limits(w, &facts));
}

bool certify_holds(struct fay_certify *c, size_t begin, struct fay_bytes *out)
{
	size_t bitmap = c->subject->text.size / 8 + 1, all = check_room(c->size + out->size),
	       taken = sizeof(struct walk) + 2 * bitmap + 48; /* as check_image() does */
	struct walk *w = calloc(1, sizeof(*w));
	uint8_t *memory = malloc(all), *bits = calloc(2, bitmap);
	bool ok;

	if (!w || !memory || !bits)
		abort();
	w->starts = bits;
	w->insides = bits + bitmap;
	ok = all > taken && walk_part(c, w, begin, out, memory, all - taken);
	if (!ok) {
		c->refusal = w->m.refusal.rule != FAY_RULE_NONE ? w->m.refusal : w->t.refusal;
		if (c->refusal.rule == FAY_RULE_NONE)
			c->refusal = (struct check_refusal){ FAY_RULE_LIM_RESOURCE, 0,
							     "too little memory" };
		out->size = begin;
	}
	free(w);
	free(memory);
	free(bits);
	return ok;
}
