/* SPDX-License-Identifier: MIT */
/*
 * What each instruction does to the terms of registers, flags and slots. What is not modelled gives unknowns, so that an omission costs proofs and not
 * soundness.
 */
#include "smt_terms.h"

/* ---- flags and conditions ---- */

void fay_smt_forget_flags(struct query *q)
{
	for (unsigned f = 0; f < FLAGS; f++)
		q->now.flag[f] = fresh_bool(q);
}

static void result_flags(struct query *q, Z3_ast r, unsigned width)
{
	q->now.flag[ZF] = Z3_mk_eq(q->z, r, bits(q, 0, width));
	q->now.flag[SF] = top_bit(q, r, width);
	q->now.flag[PF] = fresh_bool(q);
}

/* a + b + carry, or a - b - carry, with flags; carry is a 1-bit vector. */
static Z3_ast sum(struct query *q, Z3_ast a, Z3_ast b, Z3_ast carry, bool minus, unsigned width)
{
	Z3_ast wa = Z3_mk_zero_ext(q->z, 1, a), wb = Z3_mk_zero_ext(q->z, 1, b), wc = Z3_mk_zero_ext(q->z, width, carry);
	Z3_ast w = minus ? Z3_mk_bvsub(q->z, Z3_mk_bvsub(q->z, wa, wb), wc) : Z3_mk_bvadd(q->z, Z3_mk_bvadd(q->z, wa, wb), wc);
	Z3_ast r = Z3_mk_extract(q->z, width - 1, 0, w), same = Z3_mk_bvxor(q->z, a, b);

	q->now.flag[CF] = top_bit(q, w, width + 1);
	if (!minus)
		same = Z3_mk_bvnot(q->z, same);
	q->now.flag[OF] = top_bit(q, Z3_mk_bvand(q->z, same, Z3_mk_bvxor(q->z, a, r)), width);
	result_flags(q, r, width);
	return r;
}

Z3_ast fay_smt_condition(struct query *q, enum fay_cc cc)
{
	const Z3_ast *f = q->now.flag;
	Z3_ast r;

	switch (cc & ~1) {
	case CC_O: r = f[OF]; break;
	case CC_B: r = f[CF]; break;
	case CC_E: r = f[ZF]; break;
	case CC_BE: r = either(q, f[CF], f[ZF]); break;
	case CC_S: r = f[SF]; break;
	case CC_P: r = f[PF]; break;
	case CC_L: r = Z3_mk_xor(q->z, f[SF], f[OF]); break;
	default: r = either(q, f[ZF], Z3_mk_xor(q->z, f[SF], f[OF])); break;
	}
	return cc & 1 ? negate(q, r) : r;
}

/* ---- instructions ---- */

static Z3_ast no_carry(struct query *q) { return bits(q, 0, 1); }

static void step_alu(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	bool same = insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG && insn->dst.reg == insn->src.reg;
	Z3_ast a = fay_smt_read(q, &insn->dst, w), r = NULL, old_cf = q->now.flag[CF];
	Z3_ast b = insn->op == OP_INC || insn->op == OP_DEC ? bits(q, 1, w) : same ? a : fay_smt_read(q, &insn->src, w);

	switch (insn->op) {
	case OP_ADD: case OP_INC:
		r = sum(q, a, b, no_carry(q), false, w);
		break;
	case OP_SUB: case OP_CMP: case OP_DEC:
		r = sum(q, a, b, no_carry(q), true, w);
		break;
	case OP_ADC: case OP_SBB:
		r = sum(q, a, b, Z3_mk_ite(q->z, old_cf, bits(q, 1, 1), bits(q, 0, 1)), insn->op == OP_SBB, w);
		break;
	case OP_AND: case OP_TEST: r = Z3_mk_bvand(q->z, a, b); break;
	case OP_OR: r = Z3_mk_bvor(q->z, a, b); break;
	default: r = Z3_mk_bvxor(q->z, a, b); break;
	}
	if (insn->op == OP_AND || insn->op == OP_TEST || insn->op == OP_OR || insn->op == OP_XOR) {
		result_flags(q, r, w);
		q->now.flag[CF] = q->now.flag[OF] = Z3_mk_false(q->z);
	}
	if (insn->op == OP_INC || insn->op == OP_DEC)
		q->now.flag[CF] = old_cf;
	if (insn->op != OP_CMP && insn->op != OP_TEST)
		fay_smt_write(q, &insn->dst, w, r);
}

static void step_shift(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width, mask = w == 64 ? 63 : 31;
	Z3_ast a = fay_smt_read(q, &insn->dst, w), count, r;

	if (insn->op == OP_ROL || insn->op == OP_ROR || insn->op == OP_SHLD || insn->op == OP_SHRD) {
		fay_smt_forget_flags(q);
		fay_smt_write(q, &insn->dst, w, fresh_bits(q, w));
		return;
	}
	if (insn->src.kind == OPERAND_IMM) {
		if (!(insn->src.imm & mask)) {
			fay_smt_write(q, &insn->dst, w, a);
			return;
		}
		count = bits(q, (uint64_t)insn->src.imm & mask, w);
	} else {
		/* Widths 8 and 16 may shift by more than their width: the count keeps its 5 bits. */
		Z3_ast c = Z3_mk_bvand(q->z, fay_smt_read(q, &insn->src, 8), bits(q, mask, 8));

		count = w > 8 ? Z3_mk_zero_ext(q->z, w - 8, c) : c;
	}
	r = insn->op == OP_SHL ? Z3_mk_bvshl(q->z, a, count) : insn->op == OP_SHR ? Z3_mk_bvlshr(q->z, a, count) : Z3_mk_bvashr(q->z, a, count);
	fay_smt_forget_flags(q);
	if (insn->src.kind == OPERAND_IMM)
		result_flags(q, r, w);
	fay_smt_write(q, &insn->dst, w, r);
}

static void step_wide(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	Z3_ast a = low_bits(q, q->now.reg[FAY_RAX], w), b = fay_smt_read(q, &insn->src, w), p;

	if (insn->op == OP_MUL1)
		p = Z3_mk_bvmul(q->z, Z3_mk_zero_ext(q->z, w, a), Z3_mk_zero_ext(q->z, w, b));
	else
		p = Z3_mk_bvmul(q->z, Z3_mk_sign_ext(q->z, w, a), Z3_mk_sign_ext(q->z, w, b));
	fay_smt_write_reg(q, FAY_RAX, w, Z3_mk_extract(q->z, w - 1, 0, p));
	fay_smt_write_reg(q, FAY_RDX, w, Z3_mk_extract(q->z, 2 * w - 1, w, p));
	fay_smt_forget_flags(q);
}

/* Division is followed only where the upper half is known to be zero; else the results are unknown. */
static void step_divide(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	Z3_ast low = low_bits(q, q->now.reg[FAY_RAX], w), d = fay_smt_read(q, &insn->src, w);
	const struct fay_value *rdx = &q->an->current->loc[FAY_RDX];
	bool simple = insn->op == OP_DIV && rdx->kind == KIND_SCALAR && fay_scalar_is_const(&rdx->s) && rdx->s.umin == 0;

	fay_smt_write_reg(q, FAY_RAX, w, simple ? Z3_mk_bvudiv(q->z, low, d) : fresh_bits(q, w));
	fay_smt_write_reg(q, FAY_RDX, w, simple ? Z3_mk_bvurem(q->z, low, d) : fresh_bits(q, w));
	fay_smt_forget_flags(q);
}

static void step_helper(struct query *q)
{
	static const uint8_t clobbered[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI, FAY_R8, FAY_R9, FAY_R10, FAY_R11 };

	for (unsigned i = 0; i < sizeof(clobbered); i++)
		q->now.reg[clobbered[i]] = fresh_bits(q, 64);
	fay_smt_forget_flags(q);
	for (uint32_t i = 0; i < q->now.slots; i++)
		q->now.slot[i] = fresh_bits(q, 32);
}

static void step_push(struct query *q, const struct fay_insn *insn)
{
	int64_t depth = fay_state_depth(q->an->current) + 8;
	Z3_ast v = insn->op == OP_CALL ? fresh_bits(q, 64) : fay_smt_read(q, &insn->src, 64);

	if (depth > (int64_t)FAY_STACK_HARD)
		return;
	fay_smt_set_depth(q, (uint32_t)(depth / 4));
	fay_smt_stack_store(q, -depth, 8, v);
}

void fay_smt_step(struct query *q, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	Z3_ast a, b;

	switch (insn->op) {
	case OP_NOP: case OP_LFENCE: case OP_JMP: case OP_JCC: case OP_RET:
		return;
	case OP_MOV:
		fay_smt_write(q, &insn->dst, w, fay_smt_read(q, &insn->src, w));
		return;
	case OP_MOVZX:
		fay_smt_write(q, &insn->dst, w, zero_extend(q, fay_smt_read(q, &insn->src, insn->src_width), insn->src_width, w));
		return;
	case OP_MOVSX:
		fay_smt_write(q, &insn->dst, w, sign_extend(q, fay_smt_read(q, &insn->src, insn->src_width), insn->src_width, w));
		return;
	case OP_LEA:
		fay_smt_write(q, &insn->dst, w, low_bits(q, fay_smt_address(q, &insn->src), w));
		return;
	case OP_ADD: case OP_SUB: case OP_AND: case OP_OR: case OP_XOR: case OP_ADC: case OP_SBB: case OP_CMP: case OP_TEST:
	case OP_INC: case OP_DEC:
		step_alu(q, insn);
		return;
	case OP_NOT:
		fay_smt_write(q, &insn->dst, w, Z3_mk_bvnot(q->z, fay_smt_read(q, &insn->dst, w)));
		return;
	case OP_NEG:
		fay_smt_write(q, &insn->dst, w, sum(q, bits(q, 0, w), fay_smt_read(q, &insn->dst, w), no_carry(q), true, w));
		return;
	case OP_SHL: case OP_SHR: case OP_SAR: case OP_ROL: case OP_ROR: case OP_SHLD: case OP_SHRD:
		step_shift(q, insn);
		return;
	case OP_IMUL:
		a = Z3_mk_bvmul(q->z, fay_smt_read(q, &insn->src, w), fay_smt_read(q, &insn->src2, w));
		fay_smt_forget_flags(q);
		fay_smt_write(q, &insn->dst, w, a);
		return;
	case OP_MUL1: case OP_IMUL1:
		step_wide(q, insn);
		return;
	case OP_DIV: case OP_IDIV:
		step_divide(q, insn);
		return;
	case OP_CQO:
		a = low_bits(q, q->now.reg[FAY_RAX], w);
		fay_smt_write_reg(q, FAY_RDX, w, Z3_mk_bvashr(q->z, a, bits(q, w - 1, w)));
		return;
	case OP_BT:
		a = fay_smt_read(q, &insn->dst, w);
		b = Z3_mk_bvand(q->z, fay_smt_read(q, &insn->src, w), bits(q, w - 1, w));
		b = Z3_mk_eq(q->z, Z3_mk_extract(q->z, 0, 0, Z3_mk_bvlshr(q->z, a, b)), bits(q, 1, 1));
		a = q->now.flag[ZF];
		fay_smt_forget_flags(q);
		q->now.flag[CF] = b;
		q->now.flag[ZF] = a;
		return;
	case OP_XCHG:
		a = fay_smt_read(q, &insn->dst, w);
		b = fay_smt_read(q, &insn->src, w);
		fay_smt_write(q, &insn->dst, w, b);
		fay_smt_write(q, &insn->src, w, a);
		return;
	case OP_CMOV:
		a = Z3_mk_ite(q->z, fay_smt_condition(q, (enum fay_cc)insn->cc), fay_smt_read(q, &insn->src, w), fay_smt_read(q, &insn->dst, w));
		fay_smt_write(q, &insn->dst, w, a);
		return;
	case OP_SETCC:
		fay_smt_write(q, &insn->dst, 8, Z3_mk_ite(q->z, fay_smt_condition(q, (enum fay_cc)insn->cc), bits(q, 1, 8), bits(q, 0, 8)));
		return;
	case OP_PUSH: case OP_CALL:
		step_push(q, insn);
		return;
	case OP_POP:
		fay_smt_write(q, &insn->dst, 64, fay_smt_stack_load(q, -fay_state_depth(q->an->current), 8));
		return;
	case OP_XADD:
		a = fay_smt_read(q, &insn->dst, w);
		b = sum(q, a, fay_smt_read(q, &insn->src, w), no_carry(q), false, w);
		fay_smt_write(q, &insn->dst, w, b);
		fay_smt_write(q, &insn->src, w, a);
		return;
	case OP_CALL_SLOT:
		step_helper(q);
		return;
	case OP_RDTSC:
		q->now.reg[FAY_RAX] = fresh_bits(q, 64);
		q->now.reg[FAY_RDX] = fresh_bits(q, 64);
		return;
	default:
		/* CMPXCHG, bit counts, byte swaps: what they write is unknown. */
		fay_smt_forget_flags(q);
		if (insn->op == OP_CMPXCHG)
			q->now.reg[FAY_RAX] = fresh_bits(q, 64);
		fay_smt_write(q, &insn->dst, w, fresh_bits(q, w));
	}
}
