/* SPDX-License-Identifier: MIT */
/* The semantics of multiplication and division, over terms; see semantics.c. */
#include "semantics_parts.h"

static void multiply_flags(struct fay_semantics *s, struct fay_term overflow)
{
	s->ops->flag_set(s, always(), FLAG_CF, overflow);
	s->ops->flag_set(s, always(), FLAG_OF, overflow);
	s->ops->flag_undefine(s, always(), FLAG_SF | FLAG_ZF | FLAG_PF);
}

/* Whether the upper half of a product says more than the sign of the lower. */
static struct fay_term signed_overflow(struct fay_semantics *s, struct fay_term product)
{
	struct fay_term low = fay_term_extract(s, product, 0, product.width / 2u);

	return fay_term1(s, TERM_NOT,
			 fay_term2(s, TERM_EQ, product, fay_term_sext(s, low, product.width)));
}

void fay_semantics_imul(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct fay_term a = read(s, &insn->src, w), b = read(s, &insn->src2, w);
	struct fay_term product =
		fay_term2(s, TERM_MUL, fay_term_sext(s, a, 2 * w), fay_term_sext(s, b, 2 * w));

	multiply_flags(s, signed_overflow(s, product));
	write(s, &insn->dst, w, fay_term2(s, TERM_MUL, a, b));
}

/* rdx:rax, or ax for 8 bits. */
static void write_pair(struct fay_semantics *s, unsigned w, struct fay_term low,
		       struct fay_term high)
{
	if (w == 8) {
		write(s, &rax, 16, fay_term_concat(s, high, low));
		return;
	}
	write(s, &rax, w, low);
	write(s, &rdx, w, high);
}

static struct fay_term wide_product(struct fay_semantics *s, const struct fay_insn *insn,
				    bool is_signed)
{
	unsigned w = insn->width;
	struct fay_term a = read(s, &rax, w), b = read(s, &insn->src, w);

	a = is_signed ? fay_term_sext(s, a, 2 * w) : fay_term_zext(s, a, 2 * w);
	b = is_signed ? fay_term_sext(s, b, 2 * w) : fay_term_zext(s, b, 2 * w);
	return fay_term2(s, TERM_MUL, a, b);
}

void fay_semantics_mul1(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct fay_term p = wide_product(s, insn, false), high = fay_term_extract(s, p, w, w);

	multiply_flags(s, fay_term1(s, TERM_NOT, fay_term_is_zero(s, high)));
	write_pair(s, w, fay_term_extract(s, p, 0, w), high);
}

void fay_semantics_imul1(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct fay_term p = wide_product(s, insn, true);

	multiply_flags(s, signed_overflow(s, p));
	write_pair(s, w, fay_term_extract(s, p, 0, w), fay_term_extract(s, p, w, w));
}

/*
 * At twice the width. Dividing 128 bits is more than a solver should be asked; but where the upper
 * half is a known 0, as compilers make it for unsigned numbers, the width itself is enough.
 */
static void divide(struct fay_semantics *s, const struct fay_insn *insn, bool is_signed)
{
	unsigned w = insn->width;
	struct fay_term d = read(s, &insn->src, w),
			ax = w == 8 ? read(s, &rax, 16) : fay_term_const(0, 16);
	struct fay_term low = w == 8 ? fay_term_extract(s, ax, 0, 8) : read(s, &rax, w);
	struct fay_term high = w == 8 ? fay_term_extract(s, ax, 8, 8) : read(s, &rdx, w), q, r;

	s->ops->flag_undefine(s, always(), FLAG_ALL);
	if (!is_signed && high.known && high.value == 0) {
		s->ops->divide_error(s, fay_term_is_zero(s, d));
		write_pair(s, w, fay_term2(s, TERM_UDIV, low, d), fay_term2(s, TERM_UREM, low, d));
		return;
	}
	if (!s->exact) {
		write_pair(s, w, s->ops->unknown(s, low), s->ops->unknown(s, high));
		return;
	}
	low = fay_term_concat(s, high, low);
	d = is_signed ? fay_term_sext(s, d, 2 * w) : fay_term_zext(s, d, 2 * w);
	q = fay_term2(s, is_signed ? TERM_SDIV : TERM_UDIV, low, d);
	r = fay_term_extract(s, q, 0, w);
	r = is_signed ? fay_term_sext(s, r, 2 * w) : fay_term_zext(s, r, 2 * w);
	s->ops->divide_error(s, fay_term2(s, TERM_OR, fay_term_is_zero(s, d),
					  fay_term1(s, TERM_NOT, fay_term2(s, TERM_EQ, q, r))));
	r = fay_term2(s, is_signed ? TERM_SREM : TERM_UREM, low, d);
	write_pair(s, w, fay_term_extract(s, q, 0, w), fay_term_extract(s, r, 0, w));
}

void fay_semantics_div(struct fay_semantics *s, const struct fay_insn *insn)
{
	divide(s, insn, false);
}
void fay_semantics_idiv(struct fay_semantics *s, const struct fay_insn *insn)
{
	divide(s, insn, true);
}

void fay_semantics_mulx(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct fay_term a = fay_term_zext(s, read(s, &rdx, w), 2 * w),
			b = fay_term_zext(s, read(s, &insn->src, w), 2 * w);
	struct fay_term p = fay_term2(s, TERM_MUL, a, b);

	write(s, &insn->src2, w, fay_term_extract(s, p, 0, w));
	write(s, &insn->dst, w, fay_term_extract(s, p, w, w));
}

void fay_semantics_cqo(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;

	write(s, &rdx, w, fay_term2(s, TERM_SAR, read(s, &rax, w), fay_term_const(w - 1, w)));
}
