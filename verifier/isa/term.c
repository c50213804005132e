/* SPDX-License-Identifier: MIT */
/*
 * Terms: numbers are computed here, as SMT-LIB 2's theory of bit vectors says; the rest is built by
 * the back end. Only two simplifications are made on unknown terms, because idioms need them: x ^ x
 * and x - x are 0, and a choice by a known condition is that choice.
 */
#include "semantics.h"

static fay_word mask(unsigned width)
{
	return width >= 128 ? ~(fay_word)0 : width == 0 ? 1 : ((fay_word)1 << width) - 1;
}

static __int128 sign(fay_word value, unsigned width)
{
	unsigned shift = 128 - width;

	return (__int128)(value << shift) >> shift;
}

struct fay_term fay_term_const(fay_word value, unsigned width)
{
	return (struct fay_term){ .value = value & mask(width),
				  .width = (uint8_t)width,
				  .known = true };
}

struct fay_term fay_term_bool(bool value)
{
	return (struct fay_term){ .value = value, .known = true };
}

static fay_word divide(enum fay_term_op op, fay_word a, fay_word b, unsigned width)
{
	__int128 x = sign(a, width), y = sign(b, width);

	switch (op) {
	case TERM_UDIV: return b ? a / b : mask(width);
	case TERM_UREM: return b ? a % b : a;
	case TERM_SDIV:
		if (!b)
			return x < 0 ? 1 : mask(width);
		/* the most negative number by -1 is itself */
		return y == -1 ? -(fay_word)x : (fay_word)(x / y);
	default: return !b ? a : y == -1 ? 0 : (fay_word)(x % y);
	}
}

fay_word fay_term_evaluate(enum fay_term_op op, const struct fay_term *args, unsigned width,
			   unsigned low)
{
	fay_word a = args[0].value, b = args[1].value;
	unsigned w = args[0].width;
	unsigned count = b >= w ? w : (unsigned)b;

	switch (op) {
	case TERM_NOT: return ~a;
	case TERM_NEG: return -a;
	case TERM_AND: return a & b;
	case TERM_OR: return a | b;
	case TERM_XOR: return a ^ b;
	case TERM_ADD: return a + b;
	case TERM_SUB: return a - b;
	case TERM_MUL: return a * b;
	case TERM_SHL: return count >= w ? 0 : a << count;
	case TERM_SHR: return count >= w ? 0 : a >> count;
	case TERM_SAR: return (fay_word)(sign(a, w) >> (count >= w ? w - 1 : count));
	case TERM_UDIV:
	case TERM_UREM:
	case TERM_SDIV:
	case TERM_SREM: return divide(op, a, b, w);
	case TERM_EQ: return a == b;
	case TERM_ULT: return a < b;
	case TERM_ULE: return a <= b;
	case TERM_SLT: return sign(a, w) < sign(b, w);
	case TERM_SLE: return sign(a, w) <= sign(b, w);
	case TERM_ITE: return a ? b : args[2].value;
	case TERM_EXTRACT: return a >> low;
	case TERM_ZEXT: return a;
	case TERM_SEXT: return (fay_word)sign(a, w);
	case TERM_CONCAT: return a << args[1].width | b;
	case TERM_OP_COUNT: break;
	}
	(void)width; /* the caller's mask */
	return 0;
}

static struct fay_term apply(struct fay_semantics *s, enum fay_term_op op,
			     const struct fay_term *args, unsigned count, unsigned width,
			     unsigned low)
{
	bool known = true;

	for (unsigned i = 0; i < count; i++)
		known = known && args[i].known;
	if (known)
		return fay_term_const(fay_term_evaluate(op, args, width, low), width);
	return s->ops->build(s, op, args, count, width, low);
}

struct fay_term fay_term1(struct fay_semantics *s, enum fay_term_op op, struct fay_term a)
{
	struct fay_term args[3] = { a };

	return apply(s, op, args, 1, a.width, 0);
}

struct fay_term fay_term2(struct fay_semantics *s, enum fay_term_op op, struct fay_term a,
			  struct fay_term b)
{
	struct fay_term args[3] = { a, b };
	bool comparison = op >= TERM_EQ && op <= TERM_SLE;

	if ((op == TERM_XOR || op == TERM_SUB) && !a.known && !b.known && a.ast == b.ast)
		return fay_term_const(0, a.width);
	return apply(s, op, args, 2, comparison ? 0 : a.width, 0);
}

struct fay_term fay_term_ite(struct fay_semantics *s, struct fay_term condition, struct fay_term a,
			     struct fay_term b)
{
	struct fay_term args[3] = { condition, a, b };

	if (condition.known)
		return condition.value ? a : b;
	return s->ops->build(s, TERM_ITE, args, 3, a.width, 0);
}

struct fay_term fay_term_extract(struct fay_semantics *s, struct fay_term a, unsigned low,
				 unsigned width)
{
	struct fay_term args[3] = { a };

	return low == 0 && width == a.width ? a : apply(s, TERM_EXTRACT, args, 1, width, low);
}

struct fay_term fay_term_zext(struct fay_semantics *s, struct fay_term a, unsigned width)
{
	struct fay_term args[3] = { a };

	return width <= a.width ? fay_term_extract(s, a, 0, width)
				: apply(s, TERM_ZEXT, args, 1, width, 0);
}

struct fay_term fay_term_sext(struct fay_semantics *s, struct fay_term a, unsigned width)
{
	struct fay_term args[3] = { a };

	return width <= a.width ? fay_term_extract(s, a, 0, width)
				: apply(s, TERM_SEXT, args, 1, width, 0);
}

struct fay_term fay_term_concat(struct fay_semantics *s, struct fay_term high, struct fay_term low)
{
	struct fay_term args[3] = { high, low };

	return apply(s, TERM_CONCAT, args, 2, high.width + low.width, 0);
}

struct fay_term fay_term_bit(struct fay_semantics *s, struct fay_term a, unsigned bit)
{
	return fay_term2(s, TERM_EQ, fay_term_extract(s, a, bit, 1), fay_term_const(1, 1));
}

struct fay_term fay_term_is_zero(struct fay_semantics *s, struct fay_term a)
{
	return fay_term2(s, TERM_EQ, a, fay_term_const(0, a.width));
}

/* Sums of neighbours, then of pairs, and so on: log2(width) steps. */
struct fay_term fay_term_popcount(struct fay_semantics *s, struct fay_term a)
{
	for (unsigned step = 1; step < a.width; step *= 2) {
		fay_word fields = 0;
		struct fay_term even, odd;

		for (unsigned i = 0; i < a.width; i += 2 * step)
			fields |= mask(step) << i;
		even = fay_term2(s, TERM_AND, a, fay_term_const(fields, a.width));
		odd = fay_term2(s, TERM_AND,
				fay_term2(s, TERM_SHR, a, fay_term_const(step, a.width)),
				fay_term_const(fields, a.width));
		a = fay_term2(s, TERM_ADD, even, odd);
	}
	return a;
}

struct fay_term fay_term_smear(struct fay_semantics *s, struct fay_term a)
{
	for (unsigned step = 1; step < a.width; step *= 2)
		a = fay_term2(s, TERM_OR, a,
			      fay_term2(s, TERM_SHR, a, fay_term_const(step, a.width)));
	return a;
}
