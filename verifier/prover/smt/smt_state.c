/* SPDX-License-Identifier: MIT */
/*
 * What the fixpoint's invariant says of the terms, at the place where a query begins, at loop heads
 * on the way, and after instructions whose result the terms leave open.
 */
#include "smt_terms.h"

/*
 * Holds on the ways that come here. Elsewhere it may not: the invariant of a place that no
 * execution reaches can contradict itself, and assumed outright it would prove anything of the ways
 * around that place.
 */
static void assume_here(struct query *q, Z3_ast fact)
{
	fay_smt_assume(q, Z3_mk_implies(q->z, q->now.condition, fact));
}

static void assume_scalar(struct query *q, Z3_ast v, const struct fay_scalar *s)
{
	if (fay_scalar_is_const(s)) {
		assume_here(q, Z3_mk_eq(q->z, v, bits(q, s->umin, 64)));
		return;
	}
	if (s->umin)
		assume_here(q, Z3_mk_bvuge(q->z, v, bits(q, s->umin, 64)));
	if (s->umax != UINT64_MAX)
		assume_here(q, Z3_mk_bvule(q->z, v, bits(q, s->umax, 64)));
	if (s->smin != INT64_MIN && s->smin < 0)
		assume_here(q, Z3_mk_bvsge(q->z, v, bits(q, (uint64_t)s->smin, 64)));
	if (s->smax != INT64_MAX && s->smin < 0)
		assume_here(q, Z3_mk_bvsle(q->z, v, bits(q, (uint64_t)s->smax, 64)));
	if (s->unknown != UINT64_MAX)
		assume_here(q, Z3_mk_eq(q->z, Z3_mk_bvand(q->z, v, bits(q, ~s->unknown, 64)),
					bits(q, s->value, 64)));
	if (s->modulus > 1)
		assume_here(q, Z3_mk_eq(q->z, Z3_mk_bvsmod(q->z, v, bits(q, s->modulus, 64)),
					bits(q, s->remainder, 64)));
}

/* Location i as a 64-bit term. */
static Z3_ast term_at(struct query *q, const struct fay_state *s, uint32_t i)
{
	const struct fay_value *v = &s->loc[i];

	if (i >= LOC_FLAGS_A && i <= LOC_FLAGS_R)
		return s->record == RECORD_NONE ? NULL : q->record[i - LOC_FLAGS_A];
	if (i < 16)
		return q->now.reg[i];
	if (v->size == 4)
		return zero_extend(q, q->now.slot[i - LOC_SLOTS], 32, 64);
	return i > LOC_SLOTS ? Z3_mk_concat(q->z, q->now.slot[i - LOC_SLOTS - 1],
					    q->now.slot[i - LOC_SLOTS])
			     : NULL;
}

/* Location i of a stored state as a 64-bit term; NULL if it holds no number. */
Z3_ast fay_smt_location(struct query *q, const struct fay_state *s, uint32_t i)
{
	return fay_value_numeric(&s->loc[i]) && s->loc[i].init == 0xff ? term_at(q, s, i) : NULL;
}

/* Bits of the bytes that were written, of a number that was written in part. */
static void assume_part(struct query *q, const struct fay_state *s, uint32_t i)
{
	const struct fay_value *v = &s->loc[i];
	uint64_t known = 0;
	Z3_ast term;

	for (unsigned b = 0; b < 8; b++)
		if (v->init >> b & 1)
			known |= (uint64_t)0xff << 8 * b;
	known &= ~v->s.unknown;
	if (v->kind != KIND_SCALAR || v->init == 0xff || !known)
		return;
	term = term_at(q, s, i);
	if (term)
		assume_here(q, Z3_mk_eq(q->z, Z3_mk_bvand(q->z, term, bits(q, known, 64)),
					bits(q, v->s.value & known, 64)));
}

#define SUM_WIDTH 96u /* of a relation's sum: 64 bits, factors of 25, and a carry */

/* factor * S(v + delta), wide enough not to wrap. */
static Z3_ast scaled(struct query *q, Z3_ast v, uint64_t delta, int64_t factor)
{
	Z3_ast wide;

	if (delta)
		v = Z3_mk_bvadd(q->z, v, bits(q, delta, 64));
	wide = sign_extend(q, v, 64, SUM_WIDTH);
	if (factor == 1)
		return wide;
	if (factor == -1)
		return Z3_mk_bvneg(q->z, wide);
	return Z3_mk_bvmul(q->z, wide,
			   sign_extend(q, bits(q, (uint64_t)factor, 64), 64, SUM_WIDTH));
}

static void assume_relation(struct query *q, const struct fay_state *s,
			    const struct fay_relation *r)
{
	Z3_ast x = r->x <= s->count ? fay_smt_location(q, s, r->x - 1) : NULL,
	       y = r->y <= s->count ? fay_smt_location(q, s, r->y - 1) : NULL, sum;

	if (!x || !y)
		return;
	sum = Z3_mk_bvadd(q->z, scaled(q, x, r->dx, r->a), scaled(q, y, r->dy, r->b));
	if (r->lo != INT64_MIN)
		assume_here(q, Z3_mk_bvsge(q->z, sum,
					   sign_extend(q, bits(q, (uint64_t)r->lo, 64), 64,
						       SUM_WIDTH)));
	if (r->hi != INT64_MAX)
		assume_here(q, Z3_mk_bvsle(q->z, sum,
					   sign_extend(q, bits(q, (uint64_t)r->hi, 64), 64,
						       SUM_WIDTH)));
}

void fay_smt_assume_state(struct query *q, const struct fay_state *s)
{
	if (s->assumed)
		assume_here(q, fay_smt_condition(q, (enum fay_cc)(s->assumed - 1)));
	for (uint32_t i = 0; i < s->relation_count; i++)
		assume_relation(q, s, &s->relations[i]);
	for (uint32_t i = 0; i < s->count; i++) {
		Z3_ast v = fay_smt_location(q, s, i), leader;

		if (!v) {
			assume_part(q, s, i);
			continue;
		}
		assume_scalar(q, v, &s->loc[i].s);
		if (!s->loc[i].id || s->loc[i].id - 1 >= i)
			continue;
		leader = fay_smt_location(q, s, s->loc[i].id - 1);
		if (leader)
			assume_here(q, Z3_mk_eq(q->z, v,
						Z3_mk_bvadd(q->z, leader,
							    bits(q, s->loc[i].delta, 64))));
	}
}

void fay_smt_fresh_state(struct query *q, const struct fay_state *s)
{
	for (unsigned r = 0; r < 16; r++)
		q->now.reg[r] = fresh_bits(q, 64);
	for (unsigned f = 0; f < FLAGS; f++)
		q->now.flag[f] = fresh_bool(q);
	q->now.slots = s->count - LOC_SLOTS;
	for (uint32_t i = 0; i < q->now.slots; i++)
		q->now.slot[i] = fresh_bits(q, 32);
	fay_smt_assume_state(q, s);
}

void fay_smt_set_depth(struct query *q, uint32_t slots)
{
	for (uint32_t i = q->now.slots; i < slots; i++)
		q->now.slot[i] = fresh_bits(q, 32);
	q->now.slots = slots;
}

void fay_smt_after(struct query *q, const struct fay_insn *insn)
{
	const struct fay_state *s = q->an->current;
	unsigned reg;

	fay_smt_set_depth(q, s->count - LOC_SLOTS);
	q->now.reg[FAY_RSP] = bits(q, (uint64_t)-fay_state_depth(s), 64);
	/* The order of two pointers is that of their offsets only where the abstract pass says so.
	 * */
	if ((insn->op == OP_CMP || insn->op == OP_SUB) &&
	    s->loc[LOC_FLAGS_A].kind == KIND_POINTER && !(s->flags_covered & FLAG_CF)) {
		Z3_ast zf = q->now.flag[ZF];

		fay_smt_forget_flags(q);
		q->now.flag[ZF] = zf;
	}
	/*
	 * Results that the abstract pass bounds and the terms leave open. A proof for a second
	 * solver must do without, except for what vector instructions, which are opaque, put into a
	 * general register.
	 */
	if (insn->op != OP_VECTOR && (q->local || (insn->op != OP_BSR && insn->op != OP_BSF &&
						   insn->op != OP_DIV && insn->op != OP_IDIV)))
		return;
	if (insn->op == OP_VECTOR && insn->dst.kind != OPERAND_REG)
		return;
	reg = insn->op == OP_DIV || insn->op == OP_IDIV ? FAY_RAX : insn->dst.reg;
	if (s->loc[reg].kind == KIND_SCALAR && s->loc[reg].init == 0xff)
		fay_smt_assume(q, Z3_mk_implies(q->z, q->now.condition,
						Z3_mk_bvule(q->z, q->now.reg[reg],
							    bits(q, s->loc[reg].s.umax, 64))));
}
