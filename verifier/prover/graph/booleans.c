/* SPDX-License-Identifier: MIT */
/*
 * Compilers keep conditions as bytes: `setb %al; mov %al, -5(%rbp)` on one way, `mov $0` on
 * another, and where they meet `testb $1, -5(%rbp); jne`. What the branch there tells is what the
 * compare told long before. So the graph has a node of its own for each way into such a meeting,
 * and the piece of code from the setcc on has two, one for each outcome. That unfolds the graph and
 * changes nothing of what runs; which blocks are chosen is a matter of precision.
 */
#include "cfg_parts.h"

#include <stdlib.h>

#define LOOK_AHEAD 14u
#define BOOLEAN_MOST 6u

static bool on_stack(const struct fay_operand *mem)
{
	return mem->kind == OPERAND_MEM && (mem->base == FAY_RBP || mem->base == FAY_RSP) &&
	       mem->index == FAY_NO_REG;
}
static bool same_place(const struct fay_operand *a, const struct fay_operand *b)
{
	return a->kind == OPERAND_MEM && on_stack(b) && a->base == b->base && a->disp == b->disp;
}

/* Where the result of a setcc is: registers (a bit each), a place on the stack. */
struct holders {
	uint32_t regs;
	struct fay_operand slot;
};

static bool holds(const struct holders *h, const struct fay_operand *o)
{
	return o->kind == OPERAND_REG ? h->regs >> o->reg & 1 : same_place(&h->slot, o);
}

static void follow_holders(struct holders *h, const struct fay_insn *insn)
{
	bool moves = (insn->op == OP_MOV || insn->op == OP_MOVZX) && holds(h, &insn->src);

	if (insn->dst.kind == OPERAND_REG && fay_op_table[insn->op].dst_written)
		h->regs = (h->regs & ~(1u << insn->dst.reg)) | (uint32_t)moves << insn->dst.reg;
	else if (moves && on_stack(&insn->dst))
		h->slot = insn->dst;
}

bool fay_cfg_feeds_branch(const struct fay_cfg *cfg, uint32_t i)
{
	const struct fay_insn *setcc = &cfg->insns[i];
	struct holders h = { .regs = setcc->dst.kind == OPERAND_REG ? 1u << setcc->dst.reg : 0,
			     .slot = setcc->dst };
	bool asked = false;
	uint32_t at = i + 1;

	for (unsigned steps = 0; steps < LOOK_AHEAD && at < cfg->insn_count; steps++) {
		const struct fay_insn *insn = &cfg->insns[at];

		if (insn->op == OP_JCC)
			return asked;
		if (insn->op == OP_JMP && fay_cfg_in_text(cfg, insn->target)) {
			at = cfg->at[insn->target - cfg->image->text.start] - 1;
			continue;
		}
		if (fay_insn_ends_block(insn))
			return false;
		asked |= insn->width == 8 &&
			 (insn->op == OP_TEST || insn->op == OP_CMP || insn->op == OP_AND ||
			  insn->op == OP_OR) &&
			 (holds(&h, &insn->dst) || holds(&h, &insn->src));
		follow_holders(&h, insn);
		at++;
	}
	return false;
}

/* Moves from the stack at most, a byte is asked, a branch. */
static bool asks_byte(const struct fay_cfg *cfg, const struct fay_block *block)
{
	const struct fay_insn *insn = &cfg->insns[block->first], *ask = insn + block->count - 2;

	if (block->count < 2 || block->count > BOOLEAN_MOST || ask[1].op != OP_JCC ||
	    ask->width != 8 || (ask->op != OP_TEST && ask->op != OP_CMP))
		return false;
	for (; insn <= ask; insn++) {
		if (insn < ask && insn->op != OP_MOV && insn->op != OP_MOVZX && insn->op != OP_AND)
			return false;
		if ((insn->dst.kind == OPERAND_MEM && !on_stack(&insn->dst)) ||
		    (insn->src.kind == OPERAND_MEM && !on_stack(&insn->src)))
			return false;
	}
	return true;
}

/* Counts how many direct ways lead into each block, two at most. */
bool fay_cfg_mark_booleans(struct fay_cfg *cfg)
{
	uint8_t *ways = calloc(cfg->block_count + 1, 1);

	if (!ways)
		return false;
	for (uint32_t i = 0; i < cfg->insn_count; i++) {
		const struct fay_insn *insn = &cfg->insns[i];
		uint32_t to = FAY_NONE,
			 next = i + 1 < cfg->insn_count ? cfg->block_of[i + 1] : FAY_NONE;

		if (insn->op == OP_JMP || insn->op == OP_JCC)
			to = fay_cfg_block_at(cfg, insn->target);
		if (to != FAY_NONE && ways[to] < 2)
			ways[to]++;
		if (next != FAY_NONE && next != cfg->block_of[i] && insn->op != OP_JMP &&
		    insn->op != OP_RET && insn->op != OP_JMP_TABLE && ways[next] < 2)
			ways[next]++;
	}
	for (uint32_t i = 0; i < cfg->block_count; i++)
		cfg->blocks[i].boolean = ways[i] > 1 && asks_byte(cfg, &cfg->blocks[i]);
	free(ways);
	return true;
}
