/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic, logic, shifts, bits.
 */
#include "transfer.h"

/* ADD SUB AND OR XOR CMP TEST INC DEC. */
bool fay_transfer_alu(struct fay_analysis *an, const struct fay_insn *insn)
{
	enum fay_op op = (enum fay_op)insn->op;
	unsigned width = insn->width;
	uint8_t covered = FLAG_ALL & (uint8_t)~FLAG_PF;
	bool same = insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG &&
		    insn->dst.reg == insn->src.reg;
	struct fay_value a, b, r;

	if ((op == OP_XOR || op == OP_SUB) && same) {
		r = fay_value_constant(an, 0);
		fay_flags_set(an, RECORD_LOGIC, width, NULL, NULL, &r, covered);
		fay_reg_write(an, insn->dst.reg, width, r);
		return true;
	}
	if (op == OP_OR && insn->src.kind == OPERAND_IMM && insn->src.imm == -1 &&
	    insn->dst.kind == OPERAND_REG) {
		r = fay_value_constant(an, mask_of(width));
		fay_flags_set(an, RECORD_LOGIC, width, NULL, NULL, &r, covered);
		fay_reg_write(an, insn->dst.reg, width, r);
		return true;
	}
	if (!fay_operand_read(an, &insn->dst, width, &a))
		return false;
	if (op == OP_INC || op == OP_DEC)
		b = fay_value_constant(an, 1);
	else if (!fay_operand_read(an, &insn->src, width, &b))
		return false;
	switch (op) {
	case OP_CMP:
	case OP_SUB:
	case OP_DEC:
		if (op == OP_CMP && (a.kind == KIND_POINTER) != (b.kind == KIND_POINTER))
			return fay_path_refuse(an, FAY_RULE_MEM_POINTER,
					       "compares a pointer with a number");
		if (!fay_value_arithmetic(an, OP_SUB, &a, &b, width, &r))
			return false;
		fay_form_sum(an, true, &a, &b, width, &r);
		if (op == OP_DEC)
			covered &= ~FLAG_CF;
		if (a.kind == KIND_POINTER && b.kind != KIND_POINTER) {
			fay_flags_set_none(an);
			an->current->flags_undefined |= FLAG_ALL;
		} else if (!fay_flags_compare(an, &a, &b, &r, width, covered)) {
			return false;
		}
		return op == OP_CMP ? true : fay_operand_write(an, &insn->dst, width, r);
	case OP_ADD:
	case OP_INC:
		if (!fay_value_arithmetic(an, OP_ADD, &a, &b, width, &r))
			return false;
		fay_form_sum(an, false, &a, &b, width, &r);
		fay_flags_sum(an, &a, &b, &r, width, op == OP_INC ? covered & ~FLAG_CF : covered);
		return fay_operand_write(an, &insn->dst, width, r);
	default: break;
	}
	if (a.kind == KIND_POINTER || b.kind == KIND_POINTER)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER, "a logic operation on a pointer");
	if ((op == OP_TEST || op == OP_AND || op == OP_OR) && same)
		r = a;
	else if (!fay_value_arithmetic(an, op == OP_TEST ? OP_AND : op, &a, &b, width, &r))
		return false;
	else if (op == OP_AND)
		fay_form_mask(an, &a, &b, width, &r);
	fay_flags_set(an, RECORD_LOGIC, width, op == OP_OR || op == OP_XOR ? NULL : &a,
		      op == OP_OR || op == OP_XOR ? NULL : &b, &r, covered);
	return op == OP_TEST ? true : fay_operand_write(an, &insn->dst, width, r);
}

/* A pointer plus a number and the carry, or less both: `cmp $3, %al; adc $0, %rsi` goes on if it
 * was below. */
static bool pointer_with_carry(struct fay_analysis *an, const struct fay_insn *insn,
			       const struct fay_value *a, const struct fay_value *b)
{
	struct fay_scalar carry = fay_scalar_range(0, 1);
	struct fay_value by, r;

	if (a->kind != KIND_POINTER || b->kind != KIND_SCALAR || insn->width != 64)
		return fay_path_refuse(an, FAY_RULE_MEM_POINTER, "adds a pointer with carry");
	by = fay_value_fresh(an, fay_scalar_add(&b->s, &carry));
	if (!fay_value_arithmetic(an, insn->op == OP_ADC ? OP_ADD : OP_SUB, a, &by, 64, &r))
		return false;
	fay_flags_set_none(an);
	an->current->flags_undefined |= FLAG_ALL;
	return fay_operand_write(an, &insn->dst, 64, r);
}

bool fay_transfer_carry_alu(struct fay_analysis *an, const struct fay_insn *insn)
{
	bool same = insn->op == OP_SBB && insn->dst.kind == OPERAND_REG &&
		    insn->src.kind == OPERAND_REG && insn->dst.reg == insn->src.reg;
	struct fay_scalar carry = fay_scalar_range(0, 1), sum;
	struct fay_value a, b, r;
	unsigned width = insn->width;

	if (!fay_flags_ready(an, FLAG_CF))
		return false;
	if (same) {
		struct fay_scalar zero = fay_scalar_const(0),
				  ones = fay_scalar_const(mask_of(width));

		r = fay_value_fresh(an, fay_scalar_join(&zero, &ones));
	} else {
		if (!fay_operand_read(an, &insn->dst, width, &a) ||
		    !fay_operand_read(an, &insn->src, width, &b))
			return false;
		if (a.kind == KIND_POINTER || b.kind == KIND_POINTER)
			return pointer_with_carry(an, insn, &a, &b);
		sum = fay_scalar_compute_both(insn->op == OP_ADC ? OP_ADD : OP_SUB, &a.s, &b.s,
					      width);
		r = fay_value_fresh(an,
				    fay_scalar_compute_both(insn->op == OP_ADC ? OP_ADD : OP_SUB,
							    &sum, &carry, width));
	}
	fay_flags_set(an, RECORD_RESULT, width, NULL, NULL, &r, FLAG_ZF | FLAG_SF);
	return fay_operand_write(an, &insn->dst, width, r);
}

bool fay_transfer_unary(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, r, zero = fay_value_constant(an, 0),
			       ones = fay_value_constant(an, mask_of(insn->width));

	if (!fay_operand_number(an, &insn->dst, insn->width, &a))
		return false;
	if (insn->op == OP_NOT) {
		r = fay_value_fresh(an,
				    fay_scalar_compute_both(OP_SUB, &ones.s, &a.s, insn->width));
	} else {
		r = fay_value_fresh(an,
				    fay_scalar_compute_both(OP_SUB, &zero.s, &a.s, insn->width));
		fay_flags_set(an, RECORD_COMPARE, insn->width, &zero, &a, &r,
			      FLAG_ALL & (uint8_t)~FLAG_PF);
	}
	return fay_operand_write(an, &insn->dst, insn->width, r);
}

static void shift_form(struct fay_analysis *an, enum fay_op op, const struct fay_value *a,
		       unsigned by, unsigned width, struct fay_value *r)
{
	if (op == OP_SHL)
		fay_form_shift_up(an, a, by, width, r);
	else if (op == OP_SHR || (op == OP_SAR && a->s.umax <= mask_of(width) >> 1))
		fay_form_shift_down(an, a, by, width, r);
}

bool fay_transfer_shift(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b, by, r;
	struct fay_scalar count;
	unsigned width = insn->width;
	enum fay_op op = (enum fay_op)insn->op;
	bool rotate = op == OP_ROL || op == OP_ROR || op == OP_SHLD || op == OP_SHRD;

	if (!fay_operand_number(an, &insn->dst, width, &a))
		return false;
	if (op == OP_SHLD || op == OP_SHRD) {
		if (!fay_operand_number(an, &insn->src, width, &b) ||
		    !fay_operand_number(an, &insn->src2, 8, &by))
			return false;
		count = by.s;
	} else {
		if (!fay_operand_number(an, &insn->src, 8, &b))
			return false;
		count = b.s;
	}
	count = fay_scalar_shift_count(&count, width);
	if (rotate)
		r = fay_value_fresh(an, fay_scalar_range(0, mask_of(width)));
	else
		r = fay_value_fresh(an, fay_scalar_compute(op, &a.s, &count, width));
	if (fay_scalar_is_const(&count) && !rotate && count.umin < width)
		shift_form(an, op, &a, (unsigned)count.umin, width, &r);
	if (fay_scalar_is_const(&count) && count.umin == 0) {
		/* Flags are kept, and so is the value (a 32-bit register is still zero-extended).
		 * */
		return fay_operand_write(an, &insn->dst, width, a);
	}
	if (fay_scalar_is_const(&count) && !rotate && count.umin < width) {
		fay_flags_set(an, RECORD_RESULT, width, NULL, NULL, &r, FLAG_ZF | FLAG_SF);
		if (count.umin != 1)
			an->current->flags_undefined |= FLAG_OF;
	} else {
		fay_flags_set_none(an);
		an->current->flags_undefined = FLAG_ALL;
	}
	return fay_operand_write(an, &insn->dst, width, r);
}

bool fay_transfer_bt(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b;
	struct fay_scalar mask = fay_scalar_const(insn->width - 1),
			  ones = fay_scalar_const(mask_of(insn->width)), bit, r;

	if (insn->dst.kind == OPERAND_MEM && insn->src.kind != OPERAND_IMM)
		return fay_path_refuse(an, FAY_RULE_INS_FORBIDDEN,
				       "a bit of memory whose number is in a register");
	if (!fay_operand_number(an, &insn->dst, insn->width, &a) ||
	    !fay_operand_number(an, &insn->src, insn->width, &b))
		return false;
	b = fay_value_fresh(an, fay_scalar_and(&b.s, &mask));
	fay_flags_set(an, RECORD_BIT, insn->width, &a, &b, NULL, FLAG_CF);
	if (insn->op == OP_BT)
		return true;
	bit = fay_scalar_const(1);
	bit = fay_scalar_shl(&bit, &b.s);
	if (insn->op == OP_BTS) {
		r = fay_scalar_or(&a.s, &bit);
	} else if (insn->op == OP_BTC) {
		r = fay_scalar_xor(&a.s, &bit);
	} else {
		bit = fay_scalar_xor(&bit, &ones);
		r = fay_scalar_and(&a.s, &bit);
	}
	return fay_operand_write(an, &insn->dst, insn->width,
				 fay_value_fresh(an, fay_scalar_zext(&r, insn->width)));
}

/* The lowest bit set: at least the lowest possible one, at most the lowest certain one. The number
 * is not 0. */
static struct fay_scalar lowest_one(const struct fay_scalar *a)
{
	return fay_scalar_range((unsigned)__builtin_ctzll(a->value | a->unknown),
				a->value ? (unsigned)__builtin_ctzll(a->value)
					 : 63 - (unsigned)__builtin_clzll(a->umax));
}

/*
 * For a zero source the destination keeps its value (AMD) or is undefined (Intel). So it may be
 * read afterwards only if it could be read before, and nothing is known of it.
 */
static bool scan_of_zero(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value *to = &an->current->loc[insn->dst.reg];
	uint8_t init = to->kind == KIND_SCALAR ? to->init : 0;

	fay_flags_set_none(an);
	if (init != 0xff) {
		*to = fay_value_uninit();
		to->tag = TAG_NONE;
	} else {
		*to = fay_value_fresh(an, fay_scalar_top());
	}
	return true;
}

bool fay_transfer_bits(struct fay_analysis *an, const struct fay_insn *insn)
{
	unsigned width = insn->width;
	struct fay_value a, r;
	struct fay_scalar s = fay_scalar_range(0, width);

	if (!fay_operand_number(an, insn->op == OP_BSWAP ? &insn->dst : &insn->src, width, &a))
		return false;
	switch (insn->op) {
	case OP_BSWAP:
		fay_reg_write(an, insn->dst.reg, width,
			      fay_value_fresh(an, fay_scalar_range(0, mask_of(width))));
		return true;
	case OP_BSF:
	case OP_BSR:
		if (a.s.umin == 0)
			return scan_of_zero(an, insn);
		if (insn->op == OP_BSR)
			s = fay_scalar_range(63 - (unsigned)__builtin_clzll(a.s.umin),
					     63 - (unsigned)__builtin_clzll(a.s.umax));
		else
			s = lowest_one(&a.s);
		break;
	case OP_TZCNT:
		if (a.s.umin)
			s = lowest_one(&a.s);
		break;
	case OP_LZCNT:
		s = fay_scalar_range(
			a.s.umax ? (unsigned)__builtin_clzll(a.s.umax) - (64 - width) : width,
			a.s.umin ? (unsigned)__builtin_clzll(a.s.umin) - (64 - width) : width);
		break;
	default: break;
	}
	r = fay_value_fresh(an, s);
	if (insn->op == OP_POPCNT && an->checking)
		an->facts->cpu_features |= FAY_CPU_POPCNT;
	if (insn->op == OP_POPCNT)
		fay_flags_set(an, RECORD_RESULT, width, NULL, NULL, &a, FLAG_ZF);
	else
		fay_flags_set_none(an);
	fay_reg_write(an, insn->dst.reg, width, r);
	return true;
}
