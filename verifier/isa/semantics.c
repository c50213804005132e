/* SPDX-License-Identifier: MIT */
/*
 * The semantics of moves, arithmetic, exchanges and control flow, over terms (semantics.h says how
 * to read and extend this). Shifts and bits are in semantics_bits.c, multiplication and
 * division in semantics_multiply.c.
 *
 * Source: Intel SDM volume 2, the "Operation" section of each instruction.
 */
#include "semantics_parts.h"

/* ---- flags ---- */

/* Even parity of the low byte. */
static struct fay_term parity(struct fay_semantics *s, struct fay_term a)
{
	struct fay_term x = fay_term_extract(s, a, 0, 8);

	for (unsigned by = 4; by; by /= 2)
		x = fay_term2(s, TERM_XOR, x, fay_term2(s, TERM_SHR, x, fay_term_const(by, 8)));
	return fay_term1(s, TERM_NOT, fay_term_bit(s, x, 0));
}

void fay_semantics_result_flags(struct fay_semantics *s, struct fay_term condition,
				struct fay_term result)
{
	s->ops->flag_set(s, condition, FLAG_ZF, fay_term_is_zero(s, result));
	s->ops->flag_set(s, condition, FLAG_SF, top_bit(s, result));
	s->ops->flag_set(s, condition, FLAG_PF, parity(s, result));
}

/* a + b + carry, or a - b - carry, with the flags in `which`. One bit more than the width shows
 * carry and borrow. */
static struct fay_term sum(struct fay_semantics *s, struct fay_term a, struct fay_term b,
			   struct fay_term carry, bool minus, bool set_carry)
{
	enum fay_term_op op = minus ? TERM_SUB : TERM_ADD;
	unsigned w = a.width;
	struct fay_term wide =
		fay_term2(s, op, fay_term_zext(s, a, w + 1), fay_term_zext(s, b, w + 1));
	struct fay_term one = fay_term_ite(s, carry, fay_term_const(1, w + 1),
					   fay_term_const(0, w + 1)),
			r, differ, moved;

	if (!one.known || one.value)
		wide = fay_term2(s, op, wide, one);
	r = fay_term2(s, op, a, b);
	if (!one.known || one.value)
		r = fay_term2(s, op, r, fay_term_zext(s, one, w));
	/* Overflow: the signs are equal (minus: differ) and the result's is another than a's. */
	differ = fay_term2(s, TERM_XOR, a, b);
	if (!minus)
		differ = fay_term1(s, TERM_NOT, differ);
	moved = fay_term2(s, TERM_XOR, a, r);
	if (set_carry)
		s->ops->flag_set(s, always(), FLAG_CF, fay_term_bit(s, wide, w));
	s->ops->flag_set(s, always(), FLAG_OF, top_bit(s, fay_term2(s, TERM_AND, differ, moved)));
	fay_semantics_result_flags(s, always(), r);
	return r;
}

static struct fay_term logic(struct fay_semantics *s, struct fay_term r)
{
	fay_semantics_result_flags(s, always(), r);
	s->ops->flag_set(s, always(), FLAG_CF, fay_term_bool(false));
	s->ops->flag_set(s, always(), FLAG_OF, fay_term_bool(false));
	return r;
}

struct fay_term fay_semantics_condition(struct fay_semantics *s, enum fay_cc cc)
{
	struct fay_term r;

	switch (cc & ~1) {
	case CC_O: r = s->ops->flag(s, FLAG_OF); break;
	case CC_B: r = s->ops->flag(s, FLAG_CF); break;
	case CC_E: r = s->ops->flag(s, FLAG_ZF); break;
	case CC_BE:
		r = fay_term2(s, TERM_OR, s->ops->flag(s, FLAG_CF), s->ops->flag(s, FLAG_ZF));
		break;
	case CC_S: r = s->ops->flag(s, FLAG_SF); break;
	case CC_P: r = s->ops->flag(s, FLAG_PF); break;
	default:
		r = fay_term2(s, TERM_XOR, s->ops->flag(s, FLAG_SF), s->ops->flag(s, FLAG_OF));
		if ((cc & ~1) == CC_LE)
			r = fay_term2(s, TERM_OR, s->ops->flag(s, FLAG_ZF), r);
	}
	return cc & 1 ? fay_term1(s, TERM_NOT, r) : r;
}

/* ---- moves ---- */

void fay_semantics_none(struct fay_semantics *s, const struct fay_insn *insn)
{
	(void)s;
	(void)insn;
}

void fay_semantics_mov(struct fay_semantics *s, const struct fay_insn *insn)
{
	write(s, &insn->dst, insn->width,
	      fay_term_zext(s, read(s, &insn->src, insn->src_width), insn->width));
}

void fay_semantics_movsx(struct fay_semantics *s, const struct fay_insn *insn)
{
	write(s, &insn->dst, insn->width,
	      fay_term_sext(s, read(s, &insn->src, insn->src_width), insn->width));
}

void fay_semantics_lea(struct fay_semantics *s, const struct fay_insn *insn)
{
	write(s, &insn->dst, insn->width,
	      fay_term_zext(s, s->ops->address(s, &insn->src), insn->width));
}

void fay_semantics_cmov(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term b = read(s, &insn->src, insn->width), a = read(s, &insn->dst, insn->width);

	write(s, &insn->dst, insn->width,
	      fay_term_ite(s, fay_semantics_condition(s, (enum fay_cc)insn->cc), b, a));
}

void fay_semantics_setcc(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term c = fay_semantics_condition(s, (enum fay_cc)insn->cc);

	write(s, &insn->dst, 8, fay_term_ite(s, c, fay_term_const(1, 8), fay_term_const(0, 8)));
}

/* ---- arithmetic ---- */

static void arithmetic(struct fay_semantics *s, const struct fay_insn *insn, bool minus,
		       bool with_carry, bool store)
{
	struct fay_term b = read(s, &insn->src, insn->width), a = read(s, &insn->dst, insn->width);
	struct fay_term r = sum(
		s, a, b, with_carry ? s->ops->flag(s, FLAG_CF) : fay_term_bool(false), minus, true);

	if (store)
		write(s, &insn->dst, insn->width, r);
}

void fay_semantics_add(struct fay_semantics *s, const struct fay_insn *insn)
{
	arithmetic(s, insn, false, false, true);
}
void fay_semantics_sub(struct fay_semantics *s, const struct fay_insn *insn)
{
	arithmetic(s, insn, true, false, true);
}
void fay_semantics_cmp(struct fay_semantics *s, const struct fay_insn *insn)
{
	arithmetic(s, insn, true, false, false);
}
void fay_semantics_adc(struct fay_semantics *s, const struct fay_insn *insn)
{
	arithmetic(s, insn, false, true, true);
}
void fay_semantics_sbb(struct fay_semantics *s, const struct fay_insn *insn)
{
	arithmetic(s, insn, true, true, true);
}

static void bitwise(struct fay_semantics *s, const struct fay_insn *insn, enum fay_term_op op,
		    bool store)
{
	struct fay_term b = read(s, &insn->src, insn->width), a = read(s, &insn->dst, insn->width);
	struct fay_term r = logic(s, fay_term2(s, op, a, b));

	if (store)
		write(s, &insn->dst, insn->width, r);
}

void fay_semantics_and(struct fay_semantics *s, const struct fay_insn *insn)
{
	bitwise(s, insn, TERM_AND, true);
}
void fay_semantics_or(struct fay_semantics *s, const struct fay_insn *insn)
{
	bitwise(s, insn, TERM_OR, true);
}
void fay_semantics_xor(struct fay_semantics *s, const struct fay_insn *insn)
{
	bitwise(s, insn, TERM_XOR, true);
}
void fay_semantics_test(struct fay_semantics *s, const struct fay_insn *insn)
{
	bitwise(s, insn, TERM_AND, false);
}

static void by_one(struct fay_semantics *s, const struct fay_insn *insn, bool minus)
{
	struct fay_term a = read(s, &insn->dst, insn->width);

	write(s, &insn->dst, insn->width,
	      sum(s, a, fay_term_const(1, insn->width), fay_term_bool(false), minus, false));
}

void fay_semantics_inc(struct fay_semantics *s, const struct fay_insn *insn)
{
	by_one(s, insn, false);
}
void fay_semantics_dec(struct fay_semantics *s, const struct fay_insn *insn)
{
	by_one(s, insn, true);
}

void fay_semantics_not(struct fay_semantics *s, const struct fay_insn *insn)
{
	write(s, &insn->dst, insn->width, fay_term1(s, TERM_NOT, read(s, &insn->dst, insn->width)));
}

void fay_semantics_neg(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->dst, insn->width);

	write(s, &insn->dst, insn->width,
	      sum(s, fay_term_const(0, insn->width), a, fay_term_bool(false), true, true));
}

/* ---- exchanges ---- */

void fay_semantics_xchg(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->dst, insn->width), b = read(s, &insn->src, insn->width);

	write(s, &insn->dst, insn->width, b);
	write(s, &insn->src, insn->width, a);
}

/* The destination is memory (opcodes.def), and so is written first. */
void fay_semantics_xadd(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term a = read(s, &insn->dst, insn->width), b = read(s, &insn->src, insn->width);

	write(s, &insn->dst, insn->width, sum(s, a, b, fay_term_bool(false), false, true));
	write(s, &insn->src, insn->width, a);
}

/* Memory is written either way; the accumulator, all 64 bits of it, is left alone on success. */
void fay_semantics_cmpxchg(struct fay_semantics *s, const struct fay_insn *insn)
{
	unsigned w = insn->width;
	struct fay_term whole = read(s, &rax, 64), a = fay_term_extract(s, whole, 0, w),
			found = read(s, &insn->dst, w);
	struct fay_term wanted = read(s, &insn->src, w), same = fay_term2(s, TERM_EQ, a, found),
			after;

	sum(s, a, found, fay_term_bool(false), true, true);
	write(s, &insn->dst, w, fay_term_ite(s, same, wanted, found));
	after = w >= 32 ? fay_term_zext(s, found, 64)
			: fay_term_concat(s, fay_term_extract(s, whole, w, 64 - w), found);
	write(s, &rax, 64, fay_term_ite(s, same, whole, after));
}

/* ---- stack and control ---- */

void fay_semantics_push(struct fay_semantics *s, const struct fay_insn *insn)
{
	s->ops->push(s, read(s, &insn->src, 64));
}

void fay_semantics_pop(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_term v = s->ops->pop(s, FAY_RSP);

	write(s, &insn->dst, 64, v);
}

void fay_semantics_leave(struct fay_semantics *s, const struct fay_insn *insn)
{
	struct fay_operand rbp = {
		.kind = OPERAND_REG, .reg = FAY_RBP, .base = FAY_NO_REG, .index = FAY_NO_REG
	};

	(void)insn;
	write(s, &rbp, 64, s->ops->pop(s, FAY_RBP));
}

static void advance(struct fay_semantics *s, unsigned reg, struct fay_term bytes)
{
	struct fay_operand o = {
		.kind = OPERAND_REG, .reg = (uint8_t)reg, .base = FAY_NO_REG, .index = FAY_NO_REG
	};

	write(s, &o, 64, fay_term2(s, TERM_ADD, read(s, &o, 64), bytes));
}

/* The direction flag is clear (include/fay/event.h). */
static void string(struct fay_semantics *s, const struct fay_insn *insn, bool fill)
{
	struct fay_operand rcx = {
		.kind = OPERAND_REG, .reg = FAY_RCX, .base = FAY_NO_REG, .index = FAY_NO_REG
	};
	struct fay_term count = read(s, &rcx, 64), value = fay_term_const(0, insn->width), bytes;

	if (fill)
		value = read(s, &insn->src, insn->width);
	bytes = fay_term2(s, TERM_MUL, count, fay_term_const(insn->width / 8, 64));
	s->ops->string(s, count, fill ? &value : NULL);
	advance(s, FAY_RDI, bytes);
	if (!fill)
		advance(s, FAY_RSI, bytes);
	write(s, &rcx, 64, fay_term_const(0, 64));
}

void fay_semantics_rep_movs(struct fay_semantics *s, const struct fay_insn *insn)
{
	string(s, insn, false);
}
void fay_semantics_rep_stos(struct fay_semantics *s, const struct fay_insn *insn)
{
	string(s, insn, true);
}

void fay_semantics_jmp(struct fay_semantics *s, const struct fay_insn *insn)
{
	s->ops->jump(s, always(), s->ops->code_address(s, insn->target));
}

void fay_semantics_jcc(struct fay_semantics *s, const struct fay_insn *insn)
{
	s->ops->jump(s, fay_semantics_condition(s, (enum fay_cc)insn->cc),
		     s->ops->code_address(s, insn->target));
}

void fay_semantics_jump_table(struct fay_semantics *s, const struct fay_insn *insn)
{
	s->ops->jump(s, always(), read(s, &insn->dst, 64));
}

void fay_semantics_call(struct fay_semantics *s, const struct fay_insn *insn)
{
	s->ops->push(s, s->ops->code_address(s, insn->address + insn->length));
	s->ops->jump(s, always(), s->ops->code_address(s, insn->target));
}

void fay_semantics_call_helper(struct fay_semantics *s, const struct fay_insn *insn)
{
	(void)insn;
	s->ops->call_helper(s);
}

void fay_semantics_vector(struct fay_semantics *s, const struct fay_insn *insn)
{
	(void)insn;
	s->ops->vector(s);
}

void fay_semantics_ret(struct fay_semantics *s, const struct fay_insn *insn)
{
	(void)insn;
	s->ops->jump(s, always(), s->ops->pop(s, FAY_RSP));
}

/* The interpreter keeps what its caller put into the registers. */
void fay_semantics_rdtsc(struct fay_semantics *s, const struct fay_insn *insn)
{
	(void)insn;
	write(s, &rax, 32, s->ops->unknown(s, read(s, &rax, 32)));
	write(s, &rdx, 32, s->ops->unknown(s, read(s, &rdx, 32)));
}

/* Which function an operation has: ops.def. */
static void (*const functions[OP_COUNT])(struct fay_semantics *, const struct fay_insn *) = {
#define OP(ident, name, dst, src, reads, writes, undefined, attributes, transfer, semantics, step, \
	   flow, implicit, meaning)                                                                \
	[OP_##ident] = fay_semantics_##semantics,
#include "ops.def"
#undef OP
};

void fay_semantics_run(struct fay_semantics *s)
{
	functions[s->insn->op](s, s->insn);
}
