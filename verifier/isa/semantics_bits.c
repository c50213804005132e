/* SPDX-License-Identifier: MIT */
/*
 * The semantics of shifts and bits, over terms; see semantics.c.
 */
#include "semantics_parts.h"

/* ---- shifts ---- */

/* Counts are masked to 5 bits, 6 for 64-bit operands; so 8 and 16 bits can be shifted beyond their
 * width. */
struct count {
	struct fay_term value; /* 8 bits */
	struct fay_term any;   /* not 0: flags change */
	struct fay_term many;  /* not 0 and not 1: OF is undefined */
};

static struct count shift_count(struct fay_semantics *s, const struct fay_operand *o,
				unsigned width)
{
	struct count c;

	c.value = fay_term2(s, TERM_AND, read(s, o, 8), fay_term_const(width == 64 ? 63 : 31, 8));
	c.any = fay_term1(s, TERM_NOT, fay_term_is_zero(s, c.value));
	c.many = fay_term2(s, TERM_ULT, fay_term_const(1, 8), c.value);
	return c;
}

static void finish(struct fay_semantics *s, const struct fay_insn *insn, const struct count *c,
		   struct fay_term r, struct fay_term carry, struct fay_term overflow,
		   bool result_flags)
{
	s->ops->flag_set(s, c->any, FLAG_CF, carry);
	s->ops->flag_set(s, c->any, FLAG_OF, overflow);
	if (result_flags)
		fay_semantics_result_flags(s, c->any, r);
	s->ops->flag_undefine(s, c->many, FLAG_OF);
	write(s, &insn->dst, insn->width, r);
}

/* CF of a shift by more than the width is undefined; by exactly the width too, the SDM says. */
static void carry_undefined(struct fay_semantics *s, const struct count *c, unsigned width)
{
	s->ops->flag_undefine(s, fay_term2(s, TERM_ULE, fay_term_const(width, 8), c->value),
			      FLAG_CF);
}

void fay_semantics_shl(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct count c = shift_count(s, &insn->src, w);
	struct fay_term a = read(s, &insn->dst, w);
	/* The bit above the operand is the last that was shifted out. */
	struct fay_term wide = fay_term2(s, TERM_SHL, fay_term_zext(s, a, w + 1),
					 fay_term_zext(s, c.value, w + 1));
	struct fay_term r = fay_term2(s, TERM_SHL, a, fay_term_zext(s, c.value, w)),
			carry = fay_term_bit(s, wide, w);

	finish(s, insn, &c, r, carry, fay_term2(s, TERM_XOR, top_bit(s, r), carry), true);
	carry_undefined(s, &c, w);
}

/* One bit below the operand: it receives the last bit that is shifted out. */
static struct fay_term with_low_bit(struct fay_semantics *s, struct fay_term a)
{
	return fay_term_concat(s, a, fay_term_const(0, 1));
}

void fay_semantics_shr(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct count c = shift_count(s, &insn->src, w);
	struct fay_term a = read(s, &insn->dst, w);
	struct fay_term wide =
		fay_term2(s, TERM_SHR, with_low_bit(s, a), fay_term_zext(s, c.value, w + 1));

	finish(s, insn, &c, fay_term2(s, TERM_SHR, a, fay_term_zext(s, c.value, w)),
	       fay_term_bit(s, wide, 0), top_bit(s, a), true);
	carry_undefined(s, &c, w);
}

void fay_semantics_sar(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct count c = shift_count(s, &insn->src, w);
	struct fay_term a = read(s, &insn->dst, w);
	struct fay_term wide =
		fay_term2(s, TERM_SAR, with_low_bit(s, a), fay_term_zext(s, c.value, w + 1));

	finish(s, insn, &c, fay_term2(s, TERM_SAR, a, fay_term_zext(s, c.value, w)),
	       fay_term_bit(s, wide, 0), fay_term_bool(false), true);
}

/* CF changes even if the count is a multiple of the width. */
static struct fay_term rotate(struct fay_semantics *s, struct fay_term a, struct fay_term count,
			      bool left)
{
	unsigned w = a.width;
	struct fay_term by =
		fay_term2(s, TERM_AND, fay_term_zext(s, count, w), fay_term_const(w - 1, w));
	/* w itself: shifts everything out */
	struct fay_term rest = fay_term2(s, TERM_SUB, fay_term_const(w, w), by);

	return fay_term2(s, TERM_OR, fay_term2(s, left ? TERM_SHL : TERM_SHR, a, by),
			 fay_term2(s, left ? TERM_SHR : TERM_SHL, a, rest));
}

void fay_semantics_rol(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct count c = shift_count(s, &insn->src, insn->width);
	struct fay_term r = rotate(s, read(s, &insn->dst, insn->width), c.value, true),
			carry = fay_term_bit(s, r, 0);

	finish(s, insn, &c, r, carry, fay_term2(s, TERM_XOR, top_bit(s, r), carry), false);
}

void fay_semantics_ror(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct count c = shift_count(s, &insn->src, insn->width);
	struct fay_term r = rotate(s, read(s, &insn->dst, insn->width), c.value, false),
			carry = top_bit(s, r);

	finish(s, insn, &c, r, carry,
	       fay_term2(s, TERM_XOR, carry, fay_term_bit(s, r, insn->width - 2u)), false);
}

/* Widths 32 and 64 only, so that the count is always below the width. */
void fay_semantics_shld(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct count c = shift_count(s, &insn->src2, w);
	struct fay_term a = read(s, &insn->dst, w), b = read(s, &insn->src, w);
	struct fay_term both =
		fay_term2(s, TERM_SHL, fay_term_concat(s, a, b), fay_term_zext(s, c.value, 2 * w));
	struct fay_term out = fay_term2(s, TERM_SHL, fay_term_zext(s, a, w + 1),
					fay_term_zext(s, c.value, w + 1));
	struct fay_term r = fay_term_extract(s, both, w, w);

	finish(s, insn, &c, r, fay_term_bit(s, out, w), top_bit(s, fay_term2(s, TERM_XOR, r, a)),
	       true);
}

void fay_semantics_shrd(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct count c = shift_count(s, &insn->src2, w);
	struct fay_term a = read(s, &insn->dst, w), b = read(s, &insn->src, w);
	struct fay_term both =
		fay_term2(s, TERM_SHR, fay_term_concat(s, b, a), fay_term_zext(s, c.value, 2 * w));
	struct fay_term out =
		fay_term2(s, TERM_SHR, with_low_bit(s, a), fay_term_zext(s, c.value, w + 1));
	struct fay_term r = fay_term_extract(s, both, 0, w);

	finish(s, insn, &c, r, fay_term_bit(s, out, 0), top_bit(s, fay_term2(s, TERM_XOR, r, a)),
	       true);
}

/* ---- bits ---- */

/* The bit's number as a count of dst's width, and CF. */
static struct fay_term select_bit(struct fay_semantics *s, const struct fay_insn *insn,
				  struct fay_term a)
{
	unsigned w = insn->width;
	struct fay_term n =
		fay_term2(s, TERM_AND, read(s, &insn->src, w), fay_term_const(w - 1, w));

	s->ops->flag_set(s, always(), FLAG_CF, fay_term_bit(s, fay_term2(s, TERM_SHR, a, n), 0));
	s->ops->flag_undefine(s, always(), FLAG_OF | FLAG_SF | FLAG_PF);
	return fay_term2(s, TERM_SHL, fay_term_const(1, w), n);
}

void fay_semantics_bt(struct fay_semantics *s, const struct fay_insn *insn)
{
	select_bit(s, insn, read(s, &insn->dst, insn->width));
}

static void change_bit(struct fay_semantics *s, const struct fay_insn *insn, enum fay_term_op op,
		       bool invert)
{
	struct fay_term a = read(s, &insn->dst, insn->width), bit = select_bit(s, insn, a);

	write(s, &insn->dst, insn->width,
	      fay_term2(s, op, a, invert ? fay_term1(s, TERM_NOT, bit) : bit));
}

void fay_semantics_bts(struct fay_semantics *s, const struct fay_insn *insn)
{
	change_bit(s, insn, TERM_OR, false);
}
void fay_semantics_btr(struct fay_semantics *s, const struct fay_insn *insn)
{
	change_bit(s, insn, TERM_AND, true);
}
void fay_semantics_btc(struct fay_semantics *s, const struct fay_insn *insn)
{
	change_bit(s, insn, TERM_XOR, false);
}

/* Ones below the lowest one of a. */
static struct fay_term below_lowest(struct fay_semantics *s, struct fay_term a)
{
	return fay_term2(s, TERM_AND, fay_term1(s, TERM_NOT, a),
			 fay_term2(s, TERM_SUB, a, fay_term_const(1, a.width)));
}

/*
 * bsf, bsr: of 0 the destination is undefined on Intel's CPUs and kept on AMD's; of its upper half,
 * too, for a 32-bit one.
 */
static void scan(struct fay_semantics *s, const struct fay_insn *insn, struct fay_term a,
		 struct fay_term index)
{
	unsigned w = insn->width;
	struct fay_term whole = read(s, &insn->dst, 64), zero = fay_term_is_zero(s, a), r;

	r = w >= 32 ? fay_term_zext(s, index, 64)
		    : fay_term_concat(s, fay_term_extract(s, whole, w, 64 - w), index);
	s->ops->flag_set(s, always(), FLAG_ZF, zero);
	s->ops->flag_undefine(s, always(), FLAG_ALL & ~FLAG_ZF);
	write(s, &insn->dst, 64, fay_term_ite(s, zero, s->ops->unknown(s, whole), r));
}

void fay_semantics_bsf(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width);

	scan(s, insn, a, fay_term_popcount(s, below_lowest(s, a)));
}

void fay_semantics_bsr(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width),
			ones = fay_term_popcount(s, fay_term_smear(s, a));

	scan(s, insn, a, fay_term2(s, TERM_SUB, ones, fay_term_const(1, insn->width)));
}

static void count_zeros(struct fay_semantics *s, const struct fay_insn *insn, struct fay_term a,
			struct fay_term r)
{
	s->ops->flag_set(s, always(), FLAG_CF, fay_term_is_zero(s, a));
	s->ops->flag_set(s, always(), FLAG_ZF, fay_term_is_zero(s, r));
	s->ops->flag_undefine(s, always(), FLAG_OF | FLAG_SF | FLAG_PF);
	write(s, &insn->dst, insn->width, r);
}

void fay_semantics_tzcnt(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width);

	count_zeros(s, insn, a, fay_term_popcount(s, below_lowest(s, a)));
}

void fay_semantics_lzcnt(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width);

	count_zeros(s, insn, a, fay_term_popcount(s, fay_term1(s, TERM_NOT, fay_term_smear(s, a))));
}

void fay_semantics_popcnt(struct fay_semantics *s, const struct fay_insn *insn)
{
	static const uint8_t clear[] = { FLAG_CF, FLAG_OF, FLAG_SF, FLAG_PF };
	struct fay_term a = read(s, &insn->src, insn->width);

	for (unsigned i = 0; i < sizeof(clear); i++)
		s->ops->flag_set(s, always(), clear[i], fay_term_bool(false));
	s->ops->flag_set(s, always(), FLAG_ZF, fay_term_is_zero(s, a));
	write(s, &insn->dst, insn->width, fay_term_popcount(s, a));
}

/* ---- BMI ---- */

static struct fay_term reversed(struct fay_semantics *s, struct fay_term a)
{
	struct fay_term r = fay_term_extract(s, a, 0, 8);

	for (unsigned i = 8; i < a.width; i += 8)
		r = fay_term_concat(s, r, fay_term_extract(s, a, i, 8));
	return r;
}

void fay_semantics_bswap(struct fay_semantics *s, const struct fay_insn *insn)
{
	write(s, &insn->dst, insn->width, reversed(s, read(s, &insn->dst, insn->width)));
}

void fay_semantics_movbe(struct fay_semantics *s, const struct fay_insn *insn)
{
	write(s, &insn->dst, insn->width, reversed(s, read(s, &insn->src, insn->width)));
}

static void bmi_result(struct fay_semantics *s, const struct fay_insn *insn, struct fay_term r,
		       struct fay_term carry)
{
	fay_semantics_result_flags(s, always(), r);
	s->ops->flag_set(s, always(), FLAG_CF, carry);
	s->ops->flag_set(s, always(), FLAG_OF, fay_term_bool(false));
	s->ops->flag_undefine(s, always(), FLAG_PF);
	write(s, &insn->dst, insn->width, r);
}

void fay_semantics_andn(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width), b = read(s, &insn->src2, insn->width);

	bmi_result(s, insn, fay_term2(s, TERM_AND, fay_term1(s, TERM_NOT, b), a),
		   fay_term_bool(false));
}

static struct fay_term less_one(struct fay_semantics *s, struct fay_term a)
{
	return fay_term2(s, TERM_SUB, a, fay_term_const(1, a.width));
}

void fay_semantics_blsi(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width);

	bmi_result(s, insn, fay_term2(s, TERM_AND, fay_term1(s, TERM_NEG, a), a),
		   fay_term1(s, TERM_NOT, fay_term_is_zero(s, a)));
}

void fay_semantics_blsr(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width);

	bmi_result(s, insn, fay_term2(s, TERM_AND, less_one(s, a), a), fay_term_is_zero(s, a));
}

void fay_semantics_blsmsk(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->src, insn->width);

	bmi_result(s, insn, fay_term2(s, TERM_XOR, less_one(s, a), a), fay_term_is_zero(s, a));
}

/* 8 bits of the count are looked at; from the width on all bits are kept. */
void fay_semantics_bzhi(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct fay_term a = read(s, &insn->src, w),
			n = fay_term_extract(s, read(s, &insn->src2, w), 0, 8);
	struct fay_term ones =
		fay_term2(s, TERM_SHL, fay_term_const(UINT64_MAX, w), fay_term_zext(s, n, w));

	bmi_result(s, insn, fay_term2(s, TERM_AND, a, fay_term1(s, TERM_NOT, ones)),
		   fay_term2(s, TERM_ULT, fay_term_const(w - 1, 8), n));
}

static void shift_without_flags(struct fay_semantics *s, const struct fay_insn *insn,
				enum fay_term_op op)
{
	unsigned w = insn->width;
	struct fay_term a = read(s, &insn->src, w),
			n = fay_term2(s, TERM_AND, read(s, &insn->src2, w),
				      fay_term_const(w - 1, w));

	write(s, &insn->dst, w, fay_term2(s, op, a, n));
}

void fay_semantics_shlx(struct fay_semantics *s, const struct fay_insn *insn)
{
	shift_without_flags(s, insn, TERM_SHL);
}
void fay_semantics_shrx(struct fay_semantics *s, const struct fay_insn *insn)
{
	shift_without_flags(s, insn, TERM_SHR);
}
void fay_semantics_sarx(struct fay_semantics *s, const struct fay_insn *insn)
{
	shift_without_flags(s, insn, TERM_SAR);
}

void fay_semantics_rorx(struct fay_semantics *s, const struct fay_insn *insn)
{
	write(s, &insn->dst, insn->width,
	      rotate(s, read(s, &insn->src, insn->width), read(s, &insn->src2, 8), false));
}

/* The upper half wins if both go to one register. */
