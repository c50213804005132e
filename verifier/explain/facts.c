/* SPDX-License-Identifier: MIT */
/*
 * What a refusal tells of its place beyond the rule: what was known there of the registers and
 * stack bytes that the instruction uses, which way the path went, and what to change. None of it
 * decides anything.
 */
#include "explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const region_names[REGION_COUNT] = { "event", "local", "global",
							"read-only data", "stack" };

/* ---- values ---- */

static void number(const struct fay_scalar *s, char *text, size_t size)
{
	char range[96];
	size_t length;

	if (fay_scalar_is_const(s)) {
		snprintf(text, size,
			 (int64_t)s->umin > 4096 || (int64_t)s->umin < -4096 ? "0x%" PRIx64
									     : "%" PRId64,
			 s->umin);
		return;
	}
	fay_scalar_print(s, range, sizeof(range));
	if (strstr(range, " step"))
		*strstr(range, " step") = 0; /* told in words below */
	snprintf(text, size, "%s", !strcmp(range, "anything") ? "any" : range);
	length = strlen(text);
	if (s->modulus > 1 && s->remainder == 0)
		snprintf(text + length, size - length, ", multiple of %" PRIu64, s->modulus);
	else if (s->modulus > 1)
		snprintf(text + length, size - length,
			 ", %" PRIu64 " more than a multiple of %" PRIu64, s->remainder,
			 s->modulus);
}

static const char *scalar(struct fay_arena *arena, const struct fay_value *v, const char *text)
{
	unsigned bytes = (unsigned)__builtin_popcount(v->init);

	if (v->init != 0xff)
		return fay_arena_printf(arena, "number, of which only %u byte%s written", bytes,
					bytes == 1 ? " was" : "s were");
	if (!strncmp(text, "any", 3))
		return fay_arena_printf(arena, "any number%s", text + 3);
	return fay_arena_printf(arena, fay_scalar_is_const(&v->s) ? "number %s" : "number in %s",
				text);
}

const char *fay_value_describe(struct fay_arena *arena, const struct fay_value *v, unsigned reg)
{
	char text[160];

	number(&v->s, text, sizeof(text));
	switch (v->kind) {
	case KIND_SCALAR: return scalar(arena, v, text);
	case KIND_POINTER:
		if (v->tag == REGION_STACK)
			return fay_arena_printf(arena, "stack, %s from rsp at entry", text);
		return fay_arena_printf(arena, "%s + %s",
					v->tag < REGION_COUNT ? region_names[v->tag] : "?", text);
	case KIND_SAVED:
		return fay_arena_printf(arena, "the traced program's %s", fay_gpr_name(v->tag, 64));
	case KIND_HELPER:
		return fay_arena_printf(arena, "the address of %s", fay_helper_name(v->tag));
	case KIND_UNINIT:
		if (v->tag == TAG_NONE)
			return "not written on every path";
		return v->tag == reg
			       ? "not written: still the traced program's"
			       : fay_arena_printf(arena, "not written: the traced program's %s",
						  fay_gpr_name(v->tag, 64));
	case KIND_RETURN: return "a return address";
	default: return "values of different kinds, depending on the path";
	}
}

/* ---- facts ---- */

static void add_fact(struct fay_rejection *r, const char *where, const char *value)
{
	if (!where || !value || r->fact_count == FAY_MAX_FACTS)
		return;
	for (size_t i = 0; i < r->fact_count; i++)
		if (!strcmp(r->facts[i].where, where))
			return;
	r->facts[r->fact_count++] = (struct fay_fact){ where, value };
}

static void add_reg(struct fay_analysis *an, struct fay_rejection *r, unsigned reg)
{
	if (reg < 16 && reg != FAY_RSP)
		add_fact(r, fay_gpr_name(reg, 64),
			 fay_value_describe(an->arena, &an->current->loc[reg], reg));
}

static void add_operand(struct fay_analysis *an, struct fay_rejection *r,
			const struct fay_operand *o, bool read)
{
	struct fay_value at, v;

	if (o->kind == OPERAND_REG && read)
		add_reg(an, r, o->reg);
	if (o->kind != OPERAND_MEM)
		return;
	add_reg(an, r, o->base);
	add_reg(an, r, o->index);
	if (!fay_transfer_address(an, o, &at))
		return;
	add_fact(r, "the address", fay_value_describe(an->arena, &at, FAY_NO_REG));
	if (at.tag != REGION_STACK || !fay_scalar_is_const(&at.s) || at.s.smin >= 0 ||
	    at.s.smin < -fay_state_depth(an->current))
		return;
	v = an->current->loc[LOC_SLOTS + (uint32_t)(-(at.s.smin & ~(int64_t)3) / 4) - 1];
	if (v.kind != KIND_UPPER)
		add_fact(r, "the stack there", fay_value_describe(an->arena, &v, FAY_NO_REG));
}

static void implicit(struct fay_analysis *an, struct fay_rejection *r, const struct fay_insn *insn)
{
	static const uint8_t saved[] = { FAY_RBX, FAY_RBP, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };

	switch (insn->op) {
	case OP_DIV:
	case OP_IDIV:
	case OP_MUL1:
	case OP_IMUL1:
		add_reg(an, r, FAY_RAX);
		add_reg(an, r, FAY_RDX);
		return;
	case OP_CALL_SLOT:
	case OP_CALL_REG:
		add_reg(an, r, FAY_RDI);
		add_reg(an, r, FAY_RSI);
		add_reg(an, r, FAY_RDX);
		return;
	case OP_RET:
		for (unsigned i = 0; i < sizeof(saved); i++)
			if (an->current->loc[saved[i]].kind != KIND_SAVED ||
			    an->current->loc[saved[i]].tag != saved[i])
				add_reg(an, r, saved[i]);
		add_fact(r, "rsp",
			 fay_value_describe(an->arena, &an->current->loc[FAY_RSP], FAY_RSP));
		return;
	case OP_JCC:
		for (unsigned i = LOC_FLAGS_A;
		     i <= LOC_FLAGS_B && an->current->record == RECORD_COMPARE; i++)
			add_fact(r, i == LOC_FLAGS_A ? "compared" : "with",
				 fay_value_describe(an->arena, &an->current->loc[i], FAY_NO_REG));
		return;
	default: return;
	}
}

/* A loop without a bound: numbers at its head that the loop may count with. */
static void numbers_at_head(struct fay_analysis *an, struct fay_rejection *r)
{
	for (unsigned reg = 0; reg < 16; reg++)
		if (an->current->loc[reg].kind == KIND_SCALAR ||
		    (an->current->loc[reg].kind == KIND_POINTER &&
		     !fay_scalar_is_const(&an->current->loc[reg].s)))
			add_reg(an, r, reg);
}

/* ---- path ---- */

static uint32_t block_at(const struct fay_analysis *an, uint64_t offset)
{
	return fay_cfg_block_at(an->cfg, an->image->text.start + offset);
}

static void step_text(const struct fay_analysis *an, const struct fay_rejection *r, size_t i,
		      char *text, size_t size)
{
	uint32_t block = block_at(an, r->path[i]), count;
	const struct fay_insn *last;
	const char *way = "";

	snprintf(text, size, ".text+0x%" PRIx64, r->path[i]);
	if (block == FAY_NONE || i + 1 >= r->path_length)
		return;
	count = an->cfg->blocks[block].count;
	last = &an->cfg->insns[an->cfg->blocks[block].first + count - 1];
	if (last->op == OP_JCC)
		way = last->target - an->image->text.start == r->path[i + 1] ? "branch taken"
									     : "branch not taken";
	else if (last->op == OP_CALL)
		way = "call";
	else if (last->op == OP_RET)
		way = "return";
	if (*way)
		snprintf(text, size, ".text+0x%" PRIx64 ", %s at +0x%" PRIx64, r->path[i], way,
			 last->address - an->image->text.start);
}

/* How often the `period` blocks at `at` follow one another. */
static size_t repeats(const struct fay_rejection *r, size_t at, size_t period)
{
	size_t count = 1;

	while (at + (count + 1) * period <= r->path_length &&
	       !memcmp(&r->path[at], &r->path[at + count * period], period * sizeof(r->path[0])))
		count++;
	return count;
}

static void describe_path(struct fay_analysis *an, struct fay_rejection *r)
{
	const char *text = "";
	char line[128];
	size_t i = 0;

	if (r->path_length < 2)
		return;
	if (r->path_length == FAY_MAX_PATH_STEPS)
		text = "...\n";
	while (i < r->path_length && text) {
		size_t period = 1, count = 1;

		for (size_t p = 1; p <= 16 && count < 3; p++) {
			period = p;
			count = repeats(r, i, p);
		}
		if (count < 3)
			period = count = 1;
		for (size_t k = 0; k < period && text; k++) {
			step_text(an, r, i + k, line, sizeof(line));
			text = fay_arena_printf(an->arena, "%s%s\n", text, line);
		}
		if (count > 1 && text)
			text = fay_arena_printf(an->arena,
						"%s  the last %zu line%s %zu times in all\n", text,
						period, period == 1 ? "" : "s", count);
		i += period * count;
	}
	r->steps = text;
}

/* ---- advice ---- */

/* The comparison that the offset probably passed: signed where unsigned was meant. */
static bool signed_check(const struct fay_analysis *an, uint32_t node)
{
	const struct fay_node *n = &an->graph->nodes[node];

	for (uint32_t i = 0; i < n->pred_count; i++) {
		const struct fay_block *block =
			&an->cfg->blocks[an->graph->nodes[an->graph->preds[n->first_pred + i]]
						 .block];
		const struct fay_insn *last = &an->cfg->insns[block->first + block->count - 1];

		if (last->op == OP_JCC && last->cc >= CC_L)
			return true;
	}
	return false;
}

static const char *bounds_advice(struct fay_analysis *an, uint32_t node,
				 const struct fay_insn *insn, const struct fay_obligation *o)
{
	const struct fay_operand *mem = insn->dst.kind == OPERAND_MEM ? &insn->dst : &insn->src;
	struct fay_value at;

	if (mem->kind != OPERAND_MEM || !fay_transfer_address(an, mem, &at))
		return NULL;
	if (at.s.smin >= o->low && at.s.smax > o->high &&
	    (uint64_t)(at.s.smax - o->high) <= o->size)
		return fay_arena_printf(
			an->arena,
			"One element too many: the greatest offset allowed is %" PRId64
			", and the check lets %" PRId64 " through. `ja` where `jae` is meant?",
			o->high, at.s.smax);
	if (at.s.smin < o->low && signed_check(an, node))
		return "The check before is a signed comparison, which negative numbers pass: "
		       "compare unsigned (ja, jae, jb, jbe).";
	if (at.s.smin < o->low && at.s.smax > o->high)
		return "Nothing bounds this offset on the path shown: it was not checked, or "
		       "another register was, or only its lower half.";
	return NULL;
}

void fay_facts_fill(struct fay_analysis *an, uint32_t node, uint32_t insn,
		    const struct fay_obligation *o, struct fay_rejection *rejection)
{
	const struct fay_block *block = &an->cfg->blocks[an->graph->nodes[node].block];
	const struct fay_insn *at = &an->cfg->insns[insn];
	const struct fay_op_info *info = &fay_op_table[at->op];
	struct fay_refusal refusal = an->refusal;
	bool checking = an->checking, reached = true;

	if (!an->in || !an->in[node])
		return;
	an->checking = false;
	fay_state_copy(an->current, an->in[node]);
	for (uint32_t i = block->first; reached && i < insn; i++)
		reached = fay_transfer_step(an, node, i);
	if (reached) {
		an->node = node;
		an->insn = insn;
		add_operand(an, rejection, &at->dst, info->dst_read);
		add_operand(an, rejection, &at->src, info->src_read);
		add_operand(an, rejection, &at->src2, true);
		implicit(an, rejection, at);
		if (rejection->rule == FAY_RULE_TRM_LOOP)
			numbers_at_head(an, rejection);
		if (o && o->size &&
		    (o->rule == FAY_RULE_MEM_BOUNDS || o->rule == FAY_RULE_MEM_BELOW_SP ||
		     o->rule == FAY_RULE_STK_RETURN))
			rejection->advice = bounds_advice(an, node, at, o);
	}
	describe_path(an, rejection);
	an->refusal = refusal;
	an->checking = checking;
}
