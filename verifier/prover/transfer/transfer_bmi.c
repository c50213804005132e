/* SPDX-License-Identifier: MIT */
/* BMI1, BMI2 and movbe: three-operand forms of what transfer_alu.c has. */
#include "transfer.h"

bool fay_transfer_movbe(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value v;

	if (!fay_operand_number(an, &insn->src, insn->width, &v))
		return false;
	return fay_operand_write(an, &insn->dst, insn->width,
				 fay_value_fresh(an, fay_scalar_range(0, mask_of(insn->width))));
}

/* b: src2, or its low bits as a count. */
static struct fay_scalar compute(const struct fay_insn *insn, const struct fay_scalar *a,
				 const struct fay_scalar *b)
{
	struct fay_scalar one = fay_scalar_const(1), zero = fay_scalar_const(0),
			  ones = fay_scalar_const(mask_of(insn->width)), t;

	switch (insn->op) {
	case OP_ANDN: t = fay_scalar_xor(b, &ones); return fay_scalar_and(&t, a);
	case OP_BLSI: t = fay_scalar_sub(&zero, a); return fay_scalar_and(&t, a);
	case OP_BLSR: t = fay_scalar_sub(a, &one); return fay_scalar_and(&t, a);
	case OP_BLSMSK: t = fay_scalar_sub(a, &one); return fay_scalar_xor(&t, a);
	case OP_BZHI:
		t = fay_scalar_zext(b, 8);
		if (!fay_scalar_is_const(&t))
			return fay_scalar_range(0, a->umax);
		t = fay_scalar_const(t.umin >= insn->width ? mask_of(insn->width)
							   : ((uint64_t)1 << t.umin) - 1);
		return fay_scalar_and(a, &t);
	case OP_SHLX: return fay_scalar_compute(OP_SHL, a, b, insn->width);
	case OP_SHRX: return fay_scalar_compute(OP_SHR, a, b, insn->width);
	case OP_SARX: return fay_scalar_compute(OP_SAR, a, b, insn->width);
	default: return fay_scalar_top(); /* RORX */
	}
}

bool fay_transfer_bmi(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b = fay_value_constant(an, 0), r;
	struct fay_scalar s;

	if (!fay_operand_number(an, &insn->src, insn->width, &a) ||
	    (insn->src2.kind != OPERAND_NONE &&
	     !fay_operand_number(an, &insn->src2, insn->width, &b)))
		return false;
	s = compute(insn, &a.s, &b.s);
	r = fay_value_fresh(an, fay_scalar_zext(&s, insn->width));
	if (fay_op_table[insn->op].flags_written)
		fay_flags_set(an, RECORD_RESULT, insn->width, NULL, NULL, &r, FLAG_ZF | FLAG_SF);
	return fay_operand_write(an, &insn->dst, insn->width, r);
}

/* dst:src2 = rdx * src; the upper half is written last. */
bool fay_transfer_mulx(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rdx = { .kind = OPERAND_REG, .reg = FAY_RDX };
	struct fay_value a, b;
	struct fay_scalar low, high, by = fay_scalar_const(32);
	unsigned width = insn->width;

	if (!fay_operand_number(an, &rdx, width, &a) ||
	    !fay_operand_number(an, &insn->src, width, &b))
		return false;
	low = fay_scalar_mul(&a.s, &b.s);
	high = width == 64 ? fay_scalar_mul_high(&a.s, &b.s) : fay_scalar_shr(&low, &by);
	low = fay_scalar_zext(&low, width);
	fay_reg_write(an, insn->src2.reg, width, fay_value_fresh(an, low));
	fay_reg_write(an, insn->dst.reg, width, fay_value_fresh(an, high));
	return true;
}
