/* SPDX-License-Identifier: MIT */
/* Shifts and bits. */
#include "step.h"

/* ---- shifts ---- */

static struct value shift_left(struct machine *m, const struct value *a, struct range by,
			       unsigned bits)
{
	struct range ra = value_range(m, a, bits, false);
	struct value r = { .kind = KIND_NUMBER, .init = 0xff, .bits = (uint8_t)bits };

	if (by.lo == by.hi) {
		r.f = value_word(m, a, bits);
		form_scale(&r.f, (uint64_t)1 << by.lo);
		return r;
	}
	if (ra.hi * POWER((unsigned)by.hi) >= POWER(bits))
		return unknown(m, bits);
	return value_fresh(m, ra.lo << by.lo, ra.hi << by.hi, 64);
}

/* Rounded down: floor(a / 2^by), a read as signed or not. */
static struct value shift_right(struct machine *m, const struct value *a, struct range by,
				unsigned bits, bool sign)
{
	struct range ra = value_range(m, a, bits, sign);
	wide lo = ra.lo >> (ra.lo < 0 ? by.lo : by.hi), hi = ra.hi >> (ra.hi < 0 ? by.hi : by.lo);
	struct value r = value_fresh(m, lo, hi, ra.lo < 0 ? bits : 64);
	struct form f;
	bool exact = by.lo == by.hi && value_form(m, a, bits, sign, &f);

	if (exact && !(((uint64_t)f.c | (uint64_t)f.k[0] | (uint64_t)f.k[1]) &
		       (uint64_t)(POWER((unsigned)by.lo) - 1))) {
		f.c >>= by.lo;
		f.k[0] >>= by.lo;
		f.k[1] >>= by.lo;
		r.f = f;
		return r;
	}
	if (exact)
		step_floor(m, &r, &f, 1, (unsigned)by.lo);
	if (sign && by.lo == bits - 1 && a->bits >= bits)
		check_define(m, &r, (struct def){ .kind = DEF_SIGN, .shift = bits, .f = a->f });
	return r;
}

bool step_shift(struct machine *m, const struct fay_insn *insn)
{
	bool bmi = insn->op == OP_SHLX || insn->op == OP_SHRX || insn->op == OP_SARX ||
		   insn->op == OP_RORX;
	bool wide_shift = insn->op == OP_SHLD || insn->op == OP_SHRD;
	const struct fay_operand *count = bmi || wide_shift ? &insn->src2 : &insn->src;
	unsigned bits = insn->width, mask = bits == 64 ? 63 : 31;
	struct value a, b, n, r;
	struct range by;

	if (!operand_number(m, bmi ? &insn->src : &insn->dst, bits, &a) ||
	    (wide_shift && !operand_number(m, &insn->src, bits, &b)) ||
	    !operand_number(m, count, count->kind == OPERAND_REG && bmi ? bits : 8, &n))
		return false;
	by = value_range(m, &n, 8, false);
	if (by.hi > mask)
		by = by.lo == by.hi ? (struct range){ by.lo & mask, by.lo & mask }
				    : (struct range){ 0, mask };
	switch (insn->op) {
	case OP_SHL:
	case OP_SHLX: r = shift_left(m, &a, by, bits); break;
	case OP_SHR:
	case OP_SHRX: r = shift_right(m, &a, by, bits, false); break;
	case OP_SAR:
	case OP_SARX: r = shift_right(m, &a, by, bits, true); break;
	default: r = unknown(m, bits);
	}
	if (by.hi == 0) {
		r = a; /* flags and value are kept; 32 bits are still zero-extended */
	} else if (!bmi) {
		bool one = by.lo == by.hi, plain = r.kind == KIND_NUMBER && one && by.lo < bits &&
						   insn->op != OP_ROL && insn->op != OP_ROR &&
						   !wide_shift;

		flags_set(m, insn, plain ? &r : NULL, NULL, FLAG_ZF | FLAG_SF);
		if (!plain)
			m->s.flags.undefined = FLAG_ALL;
		else if (by.lo == 1)
			m->s.flags.undefined &= (uint8_t)~FLAG_OF;
	}
	return operand_write(m, insn, &insn->dst, bits, &r);
}

bool step_sign(struct machine *m, const struct fay_insn *insn)
{
	struct range all = { insn->width - 1, insn->width - 1 };
	struct value a, r;

	if (!operand_number(m, &rax, insn->width, &a))
		return false;
	r = shift_right(m, &a, all, insn->width, true);
	register_write(m, FAY_RDX, insn->width, &r);
	return true;
}

/* ---- bits ---- */

bool step_bit_test(struct machine *m, const struct fay_insn *insn)
{
	unsigned bits = insn->width;
	struct value a, n, r, bit = value_number(1);
	struct range by;

	if (insn->dst.kind == OPERAND_MEM && insn->src.kind != OPERAND_IMM)
		return check_refuse(m, FAY_RULE_INS_FORBIDDEN,
				    "a bit of memory whose number is in a register");
	if (!operand_number(m, &insn->dst, bits, &a) || !operand_number(m, &insn->src, bits, &n))
		return false;
	by = value_range(m, &n, bits, false);
	if (by.hi >= bits)
		by = (struct range){ 0, bits - 1 };
	bit = shift_left(m, &bit, by, bits);
	flags_set(m, insn, NULL, NULL, 0);
	if (by.lo == by.hi && !(value_range(m, &a, bits, false).hi >> by.hi >> 1)) {
		/* the highest that can be set: it is if the number is not less than it */
		flags_set(m, insn, &a, &bit, FLAG_CF);
		m->s.flags.inverted = true;
	}
	if (insn->op == OP_BT)
		return true;
	if (insn->op == OP_BTR)
		complement(m, &bit, bits);
	r = insn->op == OP_BTR ? step_and(m, &a, &bit, bits)
			       : step_or(m, &a, &bit, bits, insn->op == OP_BTC);
	return operand_write(m, insn, &insn->dst, bits, &r);
}

static unsigned lowest(wide n, unsigned otherwise)
{
	return n ? (unsigned)__builtin_ctzll((uint64_t)n) : otherwise;
}
static unsigned highest(wide n)
{
	return 63 - (unsigned)__builtin_clzll((uint64_t)n);
}

bool step_count(struct machine *m, const struct fay_insn *insn)
{
	unsigned bits = insn->width, zeros;
	const struct def *d;
	struct value a, r, *to;
	struct range ra, result = { 0, bits };

	if (!operand_number(m, insn->op == OP_BSWAP ? &insn->dst : &insn->src, bits, &a))
		return false;
	ra = value_range(m, &a, bits, false);
	if (insn->op == OP_BSWAP || insn->op == OP_MOVBE) {
		/* low bytes that are zero become high ones; all of a number that has no others */
		zeros = lowest((wide)(a.f.c | a.f.k[0] | a.f.k[1]), bits);
		r = unknown(m, bits - (zeros < bits ? zeros : bits) / 8 * 8);
		return operand_write(m, insn, &insn->dst, bits, &r);
	}
	if ((insn->op == OP_BSF || insn->op == OP_BSR) && ra.lo == 0) {
		/* of zero: undefined, so no more readable than it was before */
		to = &m->s.reg[insn->dst.reg];
		flags_set(m, insn, NULL, NULL, 0);
		*to = to->kind == KIND_NUMBER && to->init == 0xff ? unknown(m, 64)
								  : value_nothing();
		return true;
	}
	d = check_definition(m, &a.f, DEF_ONES);
	if ((insn->op == OP_BSF || insn->op == OP_TZCNT) && ra.lo > 0)
		result.hi = ra.lo == ra.hi ? lowest(ra.lo, bits)
			    : d            ? lowest((wide)d->factor, bits)
					   : highest(ra.hi);
	if (insn->op == OP_POPCNT) /* of so many bits at most */
		result.hi = ra.hi ? highest(ra.hi) + 1 : 0;
	if (insn->op == OP_BSR)
		result = (struct range){ highest(ra.lo), highest(ra.hi) };
	if (insn->op == OP_LZCNT)
		result = (struct range){ ra.hi ? bits - 1 - highest(ra.hi) : bits,
					 ra.lo ? bits - 1 - highest(ra.lo) : bits };
	r = value_fresh(m, result.lo, result.hi, 64);
	flags_set(m, insn, insn->op == OP_POPCNT ? &a : NULL, NULL, FLAG_ZF);
	return operand_write(m, insn, &insn->dst, bits, &r);
}

bool step_bmi(struct machine *m, const struct fay_insn *insn)
{
	unsigned bits = insn->width;
	struct value a, b = value_number(0), r;
	struct form f, apart;
	struct range ra, n;

	if (!operand_number(m, &insn->src, bits, &a) ||
	    (insn->src2.kind != OPERAND_NONE && !operand_number(m, &insn->src2, bits, &b)))
		return false;
	ra = value_range(m, &a, bits, false);
	n = value_range(m, &b, 8, false);
	if (insn->op == OP_ANDN) {
		complement(m, &b, bits);
		r = step_and(m, &a, &b, bits);
	} else if (insn->op == OP_BLSMSK)
		r = value_fresh(m, 0, ra.lo > 0 ? ones(ra.hi) : POWER(bits) - 1, 64);
	else if (insn->op == OP_BZHI && n.lo == n.hi && n.lo < bits &&
		 POWER((unsigned)n.lo) <= ra.hi)
		r = value_fresh(m, 0, POWER((unsigned)n.lo) - 1, 64);
	else
		r = value_fresh(m, 0, ra.hi, 64);
	if (insn->op == OP_BLSR && ra.lo > 0 && value_form(m, &a, bits, false, &f)) {
		apart = r.f; /* less than it was, by one bit */
		check_define(m, &r, (struct def){ .kind = DEF_PART, .f = f });
		if (form_plus(&apart, &f, -1) && apart.v[1])
			form_fact(m, &apart, -(wide)UINT64_MAX - apart.c, -1 - (wide)apart.c);
	}
	flags_set(m, insn, &r, NULL, FLAG_ZF | FLAG_SF);
	return operand_write(m, insn, &insn->dst, bits, &r);
}
