/* SPDX-License-Identifier: MIT */
/* Multiplication and division. */
#include "step.h"

void step_quotient(struct machine *m, const struct value *q, const struct form *f, wide d)
{
	struct form apart = *f;

	if (!q->f.v[0] || f->v[1] || d > INT64_MAX || !form_plus(&apart, &q->f, -(int64_t)d) ||
	    !apart.v[1])
		return;
	apart.c = 0;
	form_fact(m, &apart, -(wide)f->c, d - 1 - f->c);
}

void step_floor(struct machine *m, struct value *r, const struct form *f, uint64_t factor,
		unsigned shift)
{
	struct form apart = *f;

	if (!r->f.v[0])
		return;
	for (unsigned i = 0; i < m->defs; i++) {
		const struct def *d = &m->def[i];

		if (d->kind == DEF_FLOOR && d->shift == shift && d->factor == factor &&
		    form_equal(&d->f, f) && var_find(&m->s, d->id)) {
			r->f = (struct form){ .k[0] = 1, .v[0] = d->id };
			return;
		}
	}
	if (factor == 1)
		step_quotient(m, r, f, POWER(shift));
	else if (factor >> (shift < 64 ? shift : 63) >> (shift == 64) == 0 && !f->v[1] &&
		 form_plus(&apart, &r->f, -1) && apart.v[1]) /* not more than f */
		form_fact(m, &apart, -(wide)f->c, UINT64_MAX);
	check_define(
		m, r,
		(struct def){
			.kind = DEF_FLOOR, .factor = factor, .shift = (uint8_t)shift, .f = *f });
}

/* The upper half of a pair of which al, ax, eax or rax is the lower. */
static const struct fay_operand *upper(unsigned bits)
{
	return bits == 8 ? &ah : &rdx;
}

/* The upper half of the unsigned product. */
static struct value product_high(struct machine *m, const struct value *a, const struct value *b,
				 unsigned bits)
{
	struct range ra = value_range(m, a, bits, false), rb = value_range(m, b, bits, false);
	const struct value *of = ra.lo == ra.hi ? b : a;
	uint64_t by = (uint64_t)(ra.lo == ra.hi ? ra.lo : rb.lo);
	unsigned __int128 lo = (unsigned __int128)(uint64_t)ra.lo * (uint64_t)rb.lo,
			  hi = (unsigned __int128)(uint64_t)ra.hi * (uint64_t)rb.hi;
	struct value r = value_fresh(m, (wide)(lo >> bits), (wide)(hi >> bits), 64);
	struct form f;

	if ((ra.lo == ra.hi || rb.lo == rb.hi) && value_form(m, of, bits, false, &f))
		step_floor(m, &r, &f, by, bits);
	return r;
}

bool step_multiply(struct machine *m, const struct fay_insn *insn)
{
	const struct fay_operand *second = insn->op == OP_IMUL   ? &insn->src2
					   : insn->op == OP_MULX ? &rdx
								 : &rax;
	unsigned bits = insn->width;
	struct value a, b, low, high;

	if (!operand_number(m, &insn->src, bits, &a) || !operand_number(m, second, bits, &b))
		return false;
	value_product(m, &a, &b, bits, &low);
	if (insn->op != OP_MULX)
		flags_set(m, insn, NULL, NULL, 0);
	if (insn->op == OP_IMUL)
		return operand_write(m, insn, &insn->dst, bits, &low);
	if (insn->op == OP_IMUL1 &&
	    (value_range(m, &a, bits, true).lo < 0 || value_range(m, &b, bits, true).lo < 0))
		high = unknown(m, bits);
	else
		high = product_high(m, &a, &b, bits);
	/* the upper half is written last: mulx may name one register for both */
	return operand_write(m, insn, insn->op == OP_MULX ? &insn->src2 : &rax, bits, &low) &&
	       operand_write(m, insn, insn->op == OP_MULX ? &insn->dst : upper(bits), bits, &high);
}

/* Whether `high` is the sign of `low`: their numbers say so, or cqo made it of this very number. */
static bool is_extended(struct machine *m, const struct value *low, const struct value *high,
			unsigned bits)
{
	struct range n = value_range(m, low, bits, true), h = value_range(m, high, bits, true);
	const struct def *d = check_definition(m, &high->f, DEF_SIGN);

	if (h.lo == h.hi && ((h.lo == 0 && n.lo >= 0) || (h.lo == -1 && n.hi < 0)))
		return true;
	return d && d->shift == bits && high->bits >= bits && form_equal(&d->f, &low->f) &&
	       low->bits >= bits;
}

/* n / d rounded to zero; both fit in 64 bits and a sign. */
static wide quotient(wide n, wide d)
{
	uint64_t q = (uint64_t)(n < 0 ? -n : n) / (uint64_t)d;

	return n < 0 ? -(wide)q : (wide)q;
}

static wide clamp(wide n, wide lo, wide hi)
{
	return n < lo ? lo : n > hi ? hi : n;
}

bool step_divide(struct machine *m, const struct fay_insn *insn)
{
	unsigned bits = insn->width;
	bool sign = insn->op == OP_IDIV;
	struct value low, high, divisor, q = unknown(m, bits), r = unknown(m, bits);
	struct range n, h, d;
	struct form f;
	bool faults;

	if (!operand_number(m, &rax, bits, &low) || !operand_number(m, upper(bits), bits, &high) ||
	    !operand_number(m, &insn->src, bits, &divisor))
		return false;
	n = value_range(m, &low, bits, sign);
	h = value_range(m, &high, bits, false);
	d = value_range(m, &divisor, bits, sign);
	/* it faults unless the quotient fits: SDM, DIV and IDIV */
	faults = d.lo <= 0 || (sign ? !is_extended(m, &low, &high, bits) : h.hi >= d.lo);
	if (faults && m->refine)
		return check_refuse(m, FAY_RULE_ARI_DIVIDE, "a division that may fault");
	if (!faults && (sign || h.hi == 0)) {
		unsigned width = n.lo < 0 ? bits : 64;

		q = value_fresh(m, quotient(n.lo, n.lo < 0 ? d.lo : d.hi),
				quotient(n.hi, n.hi < 0 ? d.hi : d.lo), width);
		r = value_fresh(m, clamp(n.lo, 1 - d.hi, 0), clamp(n.hi, 0, d.hi - 1), width);
		if (d.lo == d.hi && n.lo >= 0 && value_form(m, &low, bits, false, &f))
			step_quotient(m, &q, &f, d.lo);
	}
	flags_set(m, insn, NULL, NULL, 0);
	return operand_write(m, insn, &rax, bits, &q) &&
	       operand_write(m, insn, upper(bits), bits, &r);
}
