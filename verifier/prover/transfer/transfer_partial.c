/* SPDX-License-Identifier: MIT */
/*
 * Registers of which only some bytes were written. Compilers write `sete %cl` or `mov (%rsi), %cl`
 * into a register that holds nothing of theirs, compute with all of it, and use the low byte of the
 * result. That is safe, because what was never written cannot reach the bytes that are used: here
 * the bytes of a result are followed that depend on written bytes alone, and everything else
 * (memory, addresses, conditions, other operations) may only read those.
 *
 *   bytewise   mov cmov and or xor not byte k depends on byte k of each operand; of `and`, not on
 *		what a written byte that is zero takes away
 *   upward     add sub inc dec neg imul lea shl by a constant byte k depends on the bytes up to k:
 *		the bytes below the first unwritten one are written
 *
 * Flags depend on all of the result: they are undefined unless all of it counts as written. The
 * numbers are computed as always; they describe what the register holds, written or not.
 */
#include "transfer.h"

unsigned fay_partial_reads(const struct fay_insn *insn, uint8_t regs[3])
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	unsigned count = 0;

	if (fay_flow(insn) == FLOW_NONE)
		return 0;
	if (insn->op == OP_LEA) {
		if (insn->src.base != FAY_NO_REG)
			regs[count++] = insn->src.base;
		if (insn->src.index != FAY_NO_REG)
			regs[count++] = insn->src.index;
		return count;
	}
	if ((insn->op == OP_XOR || insn->op == OP_SUB) && insn->src.kind == OPERAND_REG &&
	    insn->src.reg == insn->dst.reg)
		return 0; /* zero whatever it was */
	if (insn->op == OP_OR && insn->src.kind == OPERAND_IMM && insn->src.imm == -1)
		return 0; /* all ones */
	if (insn->src.kind == OPERAND_MEM &&
	    (insn->src.base == insn->dst.reg || insn->src.index == insn->dst.reg))
		return 0; /* an address is to be read as such: all of it */
	if (info->dst_read && insn->op != OP_IMUL)
		regs[count++] = insn->dst.reg;
	if (info->src_read && insn->src.kind == OPERAND_REG)
		regs[count++] = insn->src.reg;
	if (insn->op == OP_IMUL && insn->src2.kind == OPERAND_REG)
		regs[count++] = insn->src2.reg;
	return count;
}

static bool partly(const struct fay_value *v)
{
	return v->kind == KIND_SCALAR && v->init != 0xff;
}

bool fay_partial_needed(const struct fay_state *s, const struct fay_insn *insn)
{
	uint8_t regs[3];
	unsigned count = fay_partial_reads(insn, regs);

	for (unsigned i = 0; i < count; i++)
		if (partly(&s->loc[regs[i]]))
			return true;
	return false;
}

/* Bytes that are written and known to be zero. */
static uint8_t zero_bytes(const struct fay_state *s, const struct fay_operand *operand)
{
	const struct fay_value *v = operand->kind == OPERAND_REG ? &s->loc[operand->reg] : NULL;
	uint64_t ones = operand->kind == OPERAND_IMM  ? (uint64_t)operand->imm
			: v && v->kind == KIND_SCALAR ? v->s.value | v->s.unknown
						      : UINT64_MAX;
	uint8_t zero = 0;

	for (unsigned k = 0; k < 8; k++)
		if (!(ones >> 8 * k & 0xff) && (!v || v->init >> k & 1))
			zero |= (uint8_t)(1u << k);
	return zero;
}

/* Bytes of the result that depend on written bytes alone. */
static uint8_t result_bytes(const struct fay_state *s, const struct fay_insn *insn)
{
	uint8_t regs[3], all = 0xff;
	unsigned count = fay_partial_reads(insn, regs);

	for (unsigned i = 0; i < count; i++)
		if (partly(&s->loc[regs[i]]))
			all &= s->loc[regs[i]].init;
	if (insn->width == 32)
		all |= 0xf0; /* not looked at, and zero in the result */
	if (fay_flow(insn) == FLOW_AND)
		all |= zero_bytes(s, &insn->dst) | zero_bytes(s, &insn->src);
	if (fay_flow(insn) == FLOW_UP && all != 0xff) {
		uint8_t low = insn->width == 32 ? all & 0xf : all;

		/* the ones below the lowest zero */
		all = (uint8_t)((low & ~(low + 1)) | (insn->width == 32 ? 0xf0 : 0));
	}
	return all;
}

bool fay_transfer_partial(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_state *s = an->current;
	uint8_t regs[3], init[3], bytes = result_bytes(s, insn);
	unsigned count = fay_partial_reads(insn, regs);
	struct fay_value *to = &s->loc[insn->dst.reg];

	for (unsigned i = 0; i < count; i++) {
		init[i] = s->loc[regs[i]].init;
		if (s->loc[regs[i]].kind == KIND_SCALAR)
			s->loc[regs[i]].init = 0xff;
	}
	if (!fay_transfer_functions[insn->op](an, insn))
		return false;
	for (unsigned i = count; i-- > 0;)
		if (regs[i] != insn->dst.reg)
			s->loc[regs[i]].init = init[i];
	if (to->kind == KIND_SCALAR) {
		fay_value_forget_name(an, to);
		to->init = bytes;
	}
	if (to->kind == KIND_POINTER || !(bytes & 0xf))
		*to = fay_value_uninit();
	if (!fay_op_table[insn->op].flags_written && !fay_op_table[insn->op].flags_undefined)
		return true;
	/* The record may tell of its operands only what is known of written bytes. */
	if (bytes != 0xff) {
		fay_flags_set_none(an);
		s->flags_undefined = FLAG_ALL;
	}
	s->loc[LOC_FLAGS_A] = s->loc[LOC_FLAGS_B] = fay_value_uninit();
	return true;
}
