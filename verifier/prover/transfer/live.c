/* SPDX-License-Identifier: MIT */
/*
 * Liveness: which registers and flags may still be read from a node on, by the classical backward
 * pass over the graph, in which calls are followed. The sweep forgets the others at each edge: they
 * need not be joined, related or compared, and a loop whose dead registers still change has settled
 * all the same.
 *
 * Nothing here is trusted. What was forgotten counts as never written, and the transfer functions
 * refuse to read that; so a mistake here makes an attempt fall short, and the thorough way, which
 * forgets nothing, decides.
 */
#include "live.h"

#include <stdlib.h>

#define PASSES 12u /* one for each level of loops and two more; else nothing is forgotten */
#define FLAGS_SHIFT 16
#define ALL_FLAGS ((uint32_t)FLAG_ALL << FLAGS_SHIFT)
#define BIT(r) (1u << (r))

static const uint32_t arguments =
	BIT(FAY_RDI) | BIT(FAY_RSI) | BIT(FAY_RDX) | BIT(FAY_RCX) | BIT(FAY_R8) | BIT(FAY_R9);
static const uint32_t changed_by_calls = BIT(FAY_RAX) | BIT(FAY_RCX) | BIT(FAY_RDX) | BIT(FAY_RSI) |
					 BIT(FAY_RDI) | BIT(FAY_R8) | BIT(FAY_R9) | BIT(FAY_R10) |
					 BIT(FAY_R11);

/* What a piece of code reads before it writes it, and what it writes whatever happens. */
struct effect {
	uint32_t reads, writes;
};

static uint32_t register_bit(uint8_t reg)
{
	return reg == FAY_NO_REG ? 0 : BIT(reg & 15);
}

static uint32_t named(const struct fay_operand *o)
{
	switch (o->kind) {
	case OPERAND_REG: return register_bit(o->reg);
	case OPERAND_HIGH: return register_bit(o->reg & 3);
	default: return 0;
	}
}

static uint32_t addressed(const struct fay_operand *o)
{
	return o->kind == OPERAND_MEM && !o->rip ? register_bit(o->base) | register_bit(o->index)
						 : 0;
}

/* Operands that the encoding does not show. */
static struct effect implicit(const struct fay_insn *insn)
{
	uint32_t a = BIT(FAY_RAX), d = BIT(FAY_RDX);

	switch (insn->op) {
	case OP_MUL1:
	case OP_IMUL1: return (struct effect){ a, insn->width < 32 ? 0 : a | d };
	case OP_DIV:
	case OP_IDIV: return (struct effect){ a | d, insn->width < 32 ? 0 : a | d };
	case OP_CQO:
		return (struct effect){ insn->width < 32 ? a | d : a, insn->width < 32 ? 0 : d };
	case OP_MULX: return (struct effect){ d, 0 };
	case OP_CMPXCHG: return (struct effect){ a, 0 };
	case OP_LEAVE: return (struct effect){ BIT(FAY_RBP), 0 };
	case OP_REP_MOVS:
	case OP_REP_STOS:
		return (struct effect){ a | BIT(FAY_RCX) | BIT(FAY_RSI) | BIT(FAY_RDI), 0 };
	case OP_RDTSC: return (struct effect){ 0, a | d };
	case OP_CALL_SLOT:
	case OP_CALL_REG: return (struct effect){ arguments, changed_by_calls | ALL_FLAGS };
	default: return (struct effect){ 0, 0 };
	}
}

/* A shift by a count that may be 0 leaves the flags as they are. */
static bool flags_surely_written(const struct fay_insn *insn)
{
	switch (insn->op) {
	case OP_SHL:
	case OP_SHR:
	case OP_SAR:
	case OP_ROL:
	case OP_ROR:
		return insn->src.kind == OPERAND_IMM &&
		       (insn->src.imm & (insn->width == 64 ? 63 : 31));
	case OP_SHLD:
	case OP_SHRD:
		return insn->src2.kind == OPERAND_IMM &&
		       (insn->src2.imm & (insn->width == 64 ? 63 : 31));
	default: return true;
	}
}

static struct effect effect_of(const struct fay_insn *insn)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	bool vector = insn->op == OP_VECTOR,
	     narrow = insn->width < 32 || insn->dst.kind == OPERAND_HIGH;
	bool zeroes = (insn->op == OP_XOR || insn->op == OP_SUB) && insn->dst.kind == OPERAND_REG &&
		      insn->src.kind == OPERAND_REG && insn->dst.reg == insn->src.reg;
	struct effect e = implicit(insn);

	e.reads |= addressed(&insn->dst) | addressed(&insn->src) | addressed(&insn->src2) |
		   named(&insn->src2);
	if (!zeroes && (info->dst_read || (info->dst_written && narrow) || vector))
		e.reads |= named(&insn->dst);
	if (!zeroes && (info->src_read || vector || insn->op == OP_LEA))
		e.reads |= named(&insn->src);
	if (info->dst_written && !narrow && !vector)
		e.writes |= named(&insn->dst);
	e.reads |=
		(uint32_t)(info->flags_read |
			   (info->attributes & ATTR_CC ? fay_cc_flags((enum fay_cc)insn->cc) : 0))
		<< FLAGS_SHIFT;
	if (!vector && flags_surely_written(insn))
		e.writes |= (uint32_t)(info->flags_written | info->flags_undefined) << FLAGS_SHIFT;
	return e;
}

static struct effect effect_of_block(const struct fay_cfg *cfg, const struct fay_block *block)
{
	struct effect all = { 0, 0 };

	for (uint32_t i = block->count; i-- > 0;) {
		struct effect e = effect_of(&cfg->insns[block->first + i]);

		all.reads = e.reads | (all.reads & ~e.writes);
		all.writes |= e.writes;
	}
	return all;
}

/* What the successors read, and the node itself where it has two ways out. */
static uint32_t live_behind(const struct fay_analysis *an, const uint32_t *live, uint32_t node)
{
	const struct fay_node *n = &an->graph->nodes[node];
	uint32_t found = 0;
	enum fay_cc cc;

	for (uint32_t k = 0; k < fay_node_fanout(n); k++)
		if (fay_node_succ(n, k) != FAY_NONE)
			found |= live[fay_node_succ(n, k)];
	if (fay_node_branches(an, node, &cc))
		found |= (uint32_t)fay_cc_flags(cc) << FLAGS_SHIFT;
	return found;
}

/* Whether it came to an end. */
static bool settle(const struct fay_analysis *an, const struct effect *blocks, uint32_t *live)
{
	bool changed = true;

	for (unsigned pass = 0; pass < PASSES && changed; pass++) {
		changed = false;
		for (uint32_t node = an->graph->node_count; node-- > 0;) {
			const struct effect *e = &blocks[an->graph->nodes[node].block];
			uint32_t now = e->reads | (live_behind(an, live, node) & ~e->writes);

			changed |= now != live[node];
			live[node] = now;
		}
		changed &= an->graph->loop_count > 0;
	}
	return !changed;
}

uint32_t *fay_live_find(const struct fay_analysis *an)
{
	uint32_t *live = calloc(an->graph->node_count, sizeof(*live));
	struct effect *blocks = calloc(an->cfg->block_count, sizeof(*blocks));
	bool known = live && blocks;

	for (uint32_t i = 0; known && i < an->cfg->block_count; i++)
		blocks[i] = effect_of_block(an->cfg, &an->cfg->blocks[i]);
	known = known && settle(an, blocks, live);
	free(blocks);
	if (known)
		return live;
	free(live);
	return NULL;
}

/* Kinds that say something of the traced program's registers are kept, as are the arguments as they
 * were: what is clobbered is told by them. */
static bool forgettable(const struct fay_value *v)
{
	return v->kind == KIND_SCALAR || v->kind == KIND_MIXED ||
	       (v->kind == KIND_POINTER && !(fay_scalar_is_const(&v->s) && v->s.umin == 0));
}

void fay_live_forget(struct fay_state *s, uint32_t live)
{
	for (uint32_t dead = ~live & UINT16_MAX & ~BIT(FAY_RSP); dead; dead &= dead - 1) {
		struct fay_value *v = &s->loc[__builtin_ctz(dead)];

		if (forgettable(v))
			*v = fay_value_uninit();
	}
	if (live >> FLAGS_SHIFT)
		return;
	s->flags_undefined = FLAG_ALL;
	s->assumed = 0;
	s->flags_covered = 0;
	if (s->record == RECORD_NONE)
		return;
	s->record = RECORD_NONE;
	for (unsigned i = LOC_FLAGS_A; i <= LOC_FLAGS_R; i++)
		s->loc[i] = fay_value_uninit();
}
