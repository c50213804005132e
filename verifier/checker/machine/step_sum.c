/* SPDX-License-Identifier: MIT */
/* Sums, differences, comparisons, logic. */
#include "step.h"

/* `of` is low + 2^n * high, and the mask has all bits of the latter: that is what is left. */
static bool high_part(struct machine *m, const struct value *of, unsigned bits, unsigned n,
		      uint64_t mask, struct value *r)
{
	struct form f;

	if (!n || !value_form(m, of, bits, false, &f))
		return false;
	for (unsigned i = 0; i < 2 && f.v[i]; i++) {
		struct form high = { .k[0] = f.k[i], .v[0] = f.v[i] }, low = f;
		struct range rl, rh;

		if (high.k[0] & (int64_t)(POWER(n) - 1) || !form_plus(&low, &high, -1))
			continue;
		rl = form_range(m, &low);
		rh = form_range(m, &high);
		if (rl.lo < 0 || rl.hi >= POWER(n) || rh.lo < 0 || rh.hi >= POWER(bits) ||
		    ones(rh.hi) >> n & ~(wide)(mask >> n))
			continue;
		*r = (struct value){ high, KIND_NUMBER, 0, 0xff, 64 };
		return true;
	}
	return false;
}

/* The number `a` is not greater than `b`. */
static void keep_order(struct machine *m, const struct value *a, const struct value *b,
		       unsigned bits)
{
	struct form f, g;

	if (!value_form(m, a, bits, false, &f) || !value_form(m, b, bits, false, &g) ||
	    !form_plus(&f, &g, -1) || !f.v[1])
		return;
	form_fact(m, &f, -(wide)UINT64_MAX - f.c, -(wide)f.c);
}

/* r is what some bits of `of` are. */
static void keep_part(struct machine *m, const struct value *r, const struct value *of,
		      unsigned bits)
{
	struct form f;

	if (!r->f.v[0] || !value_form(m, of, bits, false, &f))
		return;
	check_define(m, r, (struct def){ .kind = DEF_PART, .f = f });
	keep_order(m, r, of, bits);
}

struct value step_and(struct machine *m, const struct value *a, const struct value *b,
		      unsigned bits)
{
	struct range ra = value_range(m, a, bits, false), rb = value_range(m, b, bits, false);
	const struct value *of = a;
	unsigned zeros;
	struct value r;
	struct form f;
	wide hi;

	if (ra.lo == ra.hi) {
		struct range t = ra;

		ra = rb;
		rb = t;
		of = b;
	}
	if (rb.lo != rb.hi || !rb.hi) {
		r = value_fresh(m, 0, ra.hi < rb.hi ? ra.hi : rb.hi, 64);
		keep_part(m, &r, b, bits);
		keep_part(m, &r, a, bits);
		return r;
	}
	if (rb.hi == ones(rb.hi)) { /* so many low bits */
		r = *of;
		r.init = 0xff;
		if (POWER(r.bits) > rb.hi)
			r.bits = (uint8_t)(64 - __builtin_clzll((uint64_t)rb.hi));
		value_settle(m, &r, 64);
		return r;
	}
	zeros = (unsigned)__builtin_ctzll((uint64_t)rb.hi);
	if (high_part(m, of, bits, zeros, (uint64_t)rb.hi, &r))
		return r;
	/* a multiple of 2^zeros; the bits above are all kept if the mask has them */
	hi = ones(ra.hi) & rb.hi;
	r = value_fresh(m, 0, (ra.hi < hi ? ra.hi : hi) >> zeros, 64);
	if (zeros && !(ones(ra.hi) >> zeros & ~(rb.hi >> zeros)) &&
	    value_form(m, of, bits, false, &f))
		step_floor(m, &r, &f, 1, zeros);
	form_scale(&r.f, (uint64_t)1 << zeros);
	return r;
}

/* A power of two that divides whatever the form is. */
static wide multiple_of(const struct form *f)
{
	uint64_t all = (uint64_t)f->c | (uint64_t)f->k[0] | (uint64_t)f->k[1];

	return all ? (wide)(all & -all) : POWER(64);
}

struct value step_or(struct machine *m, const struct value *a, const struct value *b, unsigned bits,
		     bool exclusive)
{
	struct range ra = value_range(m, a, bits, false), rb = value_range(m, b, bits, false);
	wide lo = ra.lo > rb.lo ? ra.lo : rb.lo;
	struct form f, g;
	struct value r;

	/* where they have no bit in common it is their sum */
	if (value_congruent(m, a, bits, &f) && value_congruent(m, b, bits, &g) &&
	    (rb.hi < multiple_of(&f) || ra.hi < multiple_of(&g)) && form_add(&f, &g, 1))
		return (struct value){ f, KIND_NUMBER, 0, 0xff, (uint8_t)bits };
	if (exclusive && rb.lo == rb.hi && rb.hi == ones(rb.hi) && ra.hi <= rb.hi &&
	    value_form(m, a, bits, false, &f)) { /* the complement */
		r = value_number((uint64_t)rb.hi);
		form_add(&r.f, &f, -1);
		return r;
	}
	r = value_fresh(m, exclusive ? 0 : lo, ones(ra.hi | rb.hi), 64);
	if (exclusive)
		return r;
	keep_order(m, a, &r, bits);
	keep_order(m, b, &r, bits);
	if (rb.lo == rb.hi)
		check_define(m, &r, (struct def){ .kind = DEF_ONES, .factor = (uint64_t)rb.lo });
	return r;
}

/* ---- sums, comparisons ---- */

static bool within_region(const struct machine *m, const struct range *r, unsigned region)
{
	/* what a host passes lies 4 GiB below 2^63 */
	wide end = region_passed(m, region) ? POWER(32) : (wide)region_size(m, region);

	return region == REGION_STACK ? r->lo >= -STACK_MOST && r->hi < 0
				      : r->lo >= 0 && r->hi <= end;
}

static void compare_pointers(struct machine *m, const struct fay_insn *insn, const struct value *a,
			     const struct value *b)
{
	struct range ra = form_range(m, &a->f), rb = form_range(m, &b->f);
	/* the order of addresses is that of offsets where both lie in the region */
	bool order = within_region(m, &ra, a->tag) && within_region(m, &rb, b->tag);

	flags_set(m, insn, a, b, order ? ALL_BUT_P : FLAG_ZF);
	/* they would tell where the address plus a number wraps: a secret */
	m->s.flags.undefined |= order ? 0 : FLAG_CF | FLAG_OF;
}

static bool step_sum(struct machine *m, const struct fay_insn *insn, const struct value *a,
		     const struct value *b)
{
	bool minus = insn->op == OP_SUB || insn->op == OP_CMP || insn->op == OP_DEC;
	unsigned covered =
		insn->op == OP_INC || insn->op == OP_DEC ? ALL_BUT_P & ~FLAG_CF : ALL_BUT_P;
	struct value r = value_number(0), minus_b;
	struct range n;

	if (insn->op == OP_CMP && a->kind != b->kind)
		return check_refuse(m, FAY_RULE_MEM_POINTER, "a pointer is compared with a number");
	if ((insn->op != OP_CMP || a->kind != KIND_NUMBER) &&
	    !value_add(m, a, b, minus ? -1 : 1, insn->width, &r))
		return false;
	if (a->kind != KIND_NUMBER && a->kind == b->kind) {
		compare_pointers(m, insn, a, b);
	} else if (a->kind != KIND_NUMBER || b->kind != KIND_NUMBER) {
		flags_set(m, insn, NULL, NULL, 0);
		m->s.flags.undefined = FLAG_ALL;
	} else if (minus) {
		flags_set(m, insn, a, b, covered);
	} else {
		n = value_range(m, b, insn->width, true);
		minus_b = value_number((uint64_t)-n.lo);
		if (n.lo != n.hi || !n.lo || n.lo == -POWER(insn->width - 1)) {
			flags_set(m, insn, &r, NULL, FLAG_ZF | FLAG_SF);
		} else {
			flags_set(m, insn, a, &minus_b, covered);
			m->s.flags.inverted = true;
		}
	}
	return insn->op == OP_CMP || operand_write(m, insn, &insn->dst, insn->width, &r);
}

/* Of a word that is no form of one variable and may have wrapped nothing could be learned but for
 * this: it becomes a variable. */
static void settle_compared(struct machine *m, const struct fay_operand *o, unsigned bits, bool all)
{
	struct value *v = o->kind == OPERAND_REG ? &m->s.reg[o->reg] : NULL;
	struct form f;

	if (!v || v->kind != KIND_NUMBER)
		return;
	if ((v->f.v[1] || all) && v->bits <= bits && !value_form(m, v, bits, false, &f) &&
	    !value_form(m, v, bits, true, &f)) {
		v->f = value_fresh(m, 0, POWER(v->bits) - 1, 64).f;
		v->bits = 64;
	} else if (bits == 64) { /* narrower ones are settled where they are read */
		value_settle(m, v, bits);
	}
}

bool step_alu(struct machine *m, const struct fay_insn *insn)
{
	struct value a = value_number(0), b = value_number(1), r;
	unsigned bits = insn->width;

	if (has_constant_result(insn)) {
		r = value_number(insn->op == OP_OR ? UINT64_MAX : 0);
		r.bits = (uint8_t)bits;
		flags_set(m, insn, &r, NULL, ALL_BUT_P);
		return operand_write(m, insn, &insn->dst, bits, &r);
	}
	if (insn->op == OP_CMP || insn->op == OP_SUB || insn->op == OP_TEST) {
		/* of one that may have wrapped its upper bits tell nothing */
		settle_compared(m, &insn->dst, bits,
				insn->op == OP_TEST && insn->src.kind == OPERAND_IMM &&
					!(insn->src.imm & 1));
		settle_compared(m, &insn->src, bits, false);
	}
	if (!operand_read(m, &insn->dst, bits, &a))
		return false;
	if (insn->op != OP_INC && insn->op != OP_DEC && !operand_read(m, &insn->src, bits, &b))
		return false;
	switch (insn->op) {
	case OP_ADD:
	case OP_SUB:
	case OP_CMP:
	case OP_INC:
	case OP_DEC: return step_sum(m, insn, &a, &b);
	default: break;
	}
	if (a.kind != KIND_NUMBER || b.kind != KIND_NUMBER)
		return check_refuse(m, FAY_RULE_MEM_POINTER, "a logic operation on a pointer");
	if (same_register(insn))
		r = a;
	else if (insn->op == OP_AND || insn->op == OP_TEST)
		r = step_and(m, &a, &b, bits);
	else
		r = step_or(m, &a, &b, bits, insn->op == OP_XOR);
	flags_set(m, insn, &r, NULL, ALL_BUT_P);
	return insn->op == OP_TEST || operand_write(m, insn, &insn->dst, bits, &r);
}

/* adc, sbb: the carry is 0 or 1. */
bool step_carry(struct machine *m, const struct fay_insn *insn)
{
	struct value a, b, carry, r = value_number(0);
	int64_t k = insn->op == OP_ADC ? 1 : -1;

	if (!flags_ready(m, CC_B))
		return false;
	carry = flags_truth(m, CC_B);
	if (k > 0 || !same_register(insn)) {
		if (!operand_read(m, &insn->dst, insn->width, &a) ||
		    !operand_number(m, &insn->src, insn->width, &b) ||
		    !value_add(m, &a, &b, k, insn->width, &r))
			return false;
	}
	if (!value_add(m, &r, &carry, k, insn->width, &r))
		return false;
	if (r.kind == KIND_NUMBER) {
		flags_set(m, insn, &r, NULL, FLAG_ZF | FLAG_SF);
	} else {
		flags_set(m, insn, NULL, NULL, 0);
		m->s.flags.undefined = FLAG_ALL;
	}
	return operand_write(m, insn, &insn->dst, insn->width, &r);
}

bool step_unary(struct machine *m, const struct fay_insn *insn)
{
	struct value a, r, from = value_number(insn->op == OP_NOT ? UINT64_MAX : 0);

	if (!operand_number(m, &insn->dst, insn->width, &a) ||
	    !value_add(m, &from, &a, -1, insn->width, &r))
		return false;
	if (insn->op == OP_NEG)
		flags_set(m, insn, &from, &a, ALL_BUT_P);
	return operand_write(m, insn, &insn->dst, insn->width, &r);
}
