/* SPDX-License-Identifier: MIT */
/* What holds at the begin of a block: the prover's states there, in words. A block that is in
 * several places of the graph, or in several probes, has what holds in all of them. */
#include <string.h>

#include "inspect.h"

/* Event, local and global state, in the registers that every probe begins with. */
static bool is_argument(const struct fay_value *v, unsigned reg)
{
	return v->kind == KIND_POINTER && fay_scalar_is_const(&v->s) && !v->s.umin &&
	       ((reg == FAY_RDI && v->tag == REGION_EVENT) ||
		(reg == FAY_RSI && v->tag == REGION_LOCAL) ||
		(reg == FAY_RDX && v->tag == REGION_GLOBAL));
}

/* "any number" and values of different kinds say nothing; what is still the traced program's own
 * lies in most registers. */
static bool tells(const struct fay_value *v, unsigned reg, const char *text)
{
	if (v->kind == KIND_UNINIT || v->kind == KIND_RETURN || v->kind == KIND_UPPER)
		return false;
	if ((v->kind == KIND_SAVED && v->tag == reg) || is_argument(v, reg))
		return false;
	return text && strcmp(text, "any number") != 0 && strncmp(text, "values of", 9) != 0;
}

static void add(struct fay_arena *arena, struct fay_inspected_facts *facts, const char *where,
		const struct fay_value *v, unsigned reg)
{
	const char *text = fay_value_describe(arena, v, reg);

	if (where && facts->count < FAY_INSPECT_FACTS && tells(v, reg, text))
		facts->at[facts->count++] = (struct fay_fact){ where, text };
}

static void of_state(struct fay_arena *arena, const struct fay_state *s,
		     struct fay_inspected_facts *facts)
{
	facts->count = 0;
	for (unsigned reg = 0; reg < 16; reg++)
		if (reg != FAY_RSP)
			add(arena, facts, fay_gpr_name(reg, 64), &s->loc[reg], reg);
	for (uint32_t i = LOC_SLOTS; i < s->count && facts->count < FAY_INSPECT_FACTS; i++)
		add(arena, facts, fay_arena_printf(arena, "stack-%u", 4 * (i - LOC_SLOTS + 1)),
		    &s->loc[i], FAY_NO_REG);
}

static bool has(const struct fay_inspected_facts *facts, const struct fay_fact *fact)
{
	for (uint32_t i = 0; i < facts->count; i++)
		if (!strcmp(facts->at[i].where, fact->where) &&
		    !strcmp(facts->at[i].value, fact->value))
			return true;
	return false;
}

static void keep_common(struct fay_inspected_facts *facts, const struct fay_inspected_facts *other)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < facts->count; i++)
		if (has(other, &facts->at[i]))
			facts->at[kept++] = facts->at[i];
	facts->count = kept;
}

void fay_inspect_facts(struct fay_inspected *in, const struct fay_run *run)
{
	const struct fay_analysis *an = &run->an;

	if (!in->facts || !an->in || in->block_count > FAY_INSPECT_FACTS_BLOCKS)
		return;
	for (uint32_t node = 0; node < an->graph->node_count; node++) {
		struct fay_inspected_block *block = &in->blocks[an->graph->nodes[node].block];
		struct fay_inspected_facts found = { 0 };

		if (!an->in[node])
			continue;
		of_state(run->arena, an->in[node], &found);
		if (block->facts) {
			keep_common(block->facts, &found);
			continue;
		}
		block->facts = fay_arena_alloc(run->arena, sizeof(found));
		if (block->facts)
			*block->facts = found;
	}
}
