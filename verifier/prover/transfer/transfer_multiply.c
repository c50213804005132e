/* SPDX-License-Identifier: MIT */
/*
 * Multiplication and division.
 */
#include "transfer.h"

bool fay_transfer_imul(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_value a, b, r;

	if (!fay_operand_number(an, &insn->src, insn->width, &a) ||
	    !fay_operand_number(an, &insn->src2, insn->width, &b))
		return false;
	r = fay_value_fresh(an, fay_scalar_compute_both(OP_IMUL, &a.s, &b.s, insn->width));
	fay_form_product(an, &a, &b, insn->width, &r);
	fay_flags_set_none(an);
	return fay_operand_write(an, &insn->dst, insn->width, r);
}

/* rdx:rax, or ax for 8 bits. */
static void write_pair(struct fay_analysis *an, unsigned width, struct fay_scalar low,
		       struct fay_scalar high)
{
	struct fay_scalar by = fay_scalar_const(8);

	if (width == 8) {
		high = fay_scalar_shl(&high, &by);
		fay_reg_write(an, FAY_RAX, 16, fay_value_fresh(an, fay_scalar_or(&high, &low)));
		return;
	}
	fay_reg_write(an, FAY_RAX, width, fay_value_fresh(an, low));
	fay_reg_write(an, FAY_RDX, width, fay_value_fresh(an, high));
}

/* rdx:rax = rax * src. */
bool fay_transfer_wide_multiply(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	struct fay_value a, b;
	struct fay_scalar low, high;
	unsigned width = insn->width;

	if (!fay_operand_number(an, &rax, width, &a) ||
	    !fay_operand_number(an, &insn->src, width, &b))
		return false;
	low = fay_scalar_compute_both(OP_IMUL, &a.s, &b.s, width);
	high = fay_scalar_range(0, mask_of(width));
	if (insn->op == OP_MUL1 && width == 64) {
		high = fay_scalar_mul_high(&a.s, &b.s);
	} else if (insn->op == OP_MUL1) {
		struct fay_scalar by = fay_scalar_const(width),
				  product = fay_scalar_mul(&a.s, &b.s);

		high = fay_scalar_shr(&product, &by);
	}
	fay_flags_set_none(an);
	write_pair(an, width, low, high);
	if (width >= 32 && (insn->op == OP_MUL1 ||
			    (a.s.umax <= mask_of(width) >> 1 && b.s.umax <= mask_of(width) >> 1)))
		fay_form_product_high(an, &a, &b, width, &an->current->loc[FAY_RDX]);
	return true;
}

static bool divide_obligation(struct fay_analysis *an, bool holds, const char *missing)
{
	struct fay_obligation *o;

	if (!an->checking)
		return true;
	an->obligation_count++;
	if (holds)
		return true;
	o = fay_obligation_add(an, GOAL_DIVIDE, FAY_RULE_ARI_DIVIDE, FAY_UNPROVED);
	if (!o)
		return false;
	o->what = "a division that may fault";
	o->missing = fay_arena_printf(an->arena, "%s", missing);
	return true;
}

/* Whether `high` is the sign of `low`: their numbers say so, or cqo made it of this very number. */
static bool is_extended(const struct fay_analysis *an, const struct fay_value *low,
			const struct fay_value *high, unsigned width)
{
	struct fay_scalar n = fay_scalar_sext(&low->s, width), h = fay_scalar_sext(&high->s, width);
	const struct fay_sign *sign = &an->sign;

	if ((h.smin == 0 && h.smax == 0 && n.smin >= 0) ||
	    (h.smin == -1 && h.smax == -1 && n.smax < 0))
		return true;
	return sign->width == width && high->id == sign->high && high->delta == 0 &&
	       low->id == sign->low && low->delta == sign->low_delta;
}

/* Of a number by a positive divisor: towards zero, and the remainder has the number's sign. */
static void signed_results(const struct fay_scalar *low, const struct fay_scalar *d, unsigned width,
			   struct fay_scalar *quotient, struct fay_scalar *remainder)
{
	struct fay_scalar n = fay_scalar_sext(low, width), q, r;

	if (n.smin >= 0) {
		*quotient = fay_scalar_udiv(&n, d);
		*remainder = fay_scalar_urem(&n, d);
		return;
	}
	q = fay_scalar_srange(n.smin / d->smin, n.smax / (n.smax >= 0 ? d->smin : d->smax));
	r = fay_scalar_srange(n.smin > 1 - d->smax ? n.smin : 1 - d->smax, n.smax <= 0 ? 0
									   : n.smax < d->smax - 1
										   ? n.smax
										   : d->smax - 1);
	*quotient = fay_scalar_zext(&q, width);
	*remainder = fay_scalar_zext(&r, width);
}

bool fay_transfer_divide(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX },
			   rdx = { .kind = OPERAND_REG, .reg = FAY_RDX };
	struct fay_value low, high, divisor;
	struct fay_scalar quotient = fay_scalar_range(0, mask_of(insn->width)),
			  remainder = quotient;
	unsigned width = insn->width;
	bool holds;

	if (width == 8)
		rdx = (struct fay_operand){ .kind = OPERAND_HIGH, .reg = FAY_RAX };
	if (!fay_operand_number(an, &rax, width, &low) ||
	    !fay_operand_number(an, &rdx, width, &high) ||
	    !fay_operand_number(an, &insn->src, width, &divisor))
		return false;
	if (insn->op == OP_DIV) {
		/* The quotient fits if the upper half is less than the divisor (Intel SDM, DIV). */
		holds = divisor.s.umin > 0 && high.s.umax < divisor.s.umin;
		if (holds && high.s.umax == 0) {
			quotient = fay_scalar_udiv(&low.s, &divisor.s);
			remainder = fay_scalar_urem(&low.s, &divisor.s);
		} else if (divisor.s.umax > 0 && an->refine) {
			/* Not in the speculation pass: a division that faults on a wrong way may
			 * hand on any result (CVE-2023-20588). */
			remainder = fay_scalar_range(0, divisor.s.umax - 1);
		}
	} else {
		/* rdx must be the sign of rax, and no quotient may overflow: a positive divisor.
		 * The rest is the solver's. */
		struct fay_scalar d = fay_scalar_sext(&divisor.s, width);

		holds = is_extended(an, &low, &high, width) && d.smin > 0;
		if (holds)
			signed_results(&low.s, &d, width, &quotient, &remainder);
	}
	if (!divide_obligation(
		    an, holds,
		    insn->op == OP_DIV
			    ? "that the divisor is greater than rdx (the dividend's upper half)"
			    : "that the divisor is positive and rdx:rax a sign extension"))
		return false;
	fay_flags_set_none(an);
	write_pair(an, width, quotient, remainder);
	return true;
}

bool fay_transfer_cqo(struct fay_analysis *an, const struct fay_insn *insn)
{
	struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX };
	struct fay_scalar by = fay_scalar_const(63), s;
	struct fay_value a, r;

	if (!fay_operand_number(an, &rax, insn->width, &a))
		return false;
	s = fay_scalar_sext(&a.s, insn->width);
	s = fay_scalar_sar(&s, &by);
	r = fay_value_fresh(an, fay_scalar_zext(&s, insn->width));
	fay_reg_write(an, FAY_RDX, insn->width, r);
	if (insn->width >= 32) /* rdx bears r's name then */
		an->sign = (struct fay_sign){
			.high = r.id, .low = a.id, .low_delta = a.delta, .width = insn->width
		};
	return true;
}
