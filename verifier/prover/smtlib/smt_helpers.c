/* SPDX-License-Identifier: MIT */
/* The helpers' contracts as formulas. */
#include "smt_obligations.h"

static Z3_ast local_start(struct proof *p)
{
	struct query *q = p->q;

	return both(q, fay_kinds_is(q, p->kinds.reg[FAY_RDI], TAG_POINTER + REGION_LOCAL),
		    Z3_mk_eq(q->z, q->now.reg[FAY_RDI], bits(q, 0, 64)));
}

/* rsi is the number of a state object of this kind. */
static Z3_ast state_number(struct proof *p, unsigned kind)
{
	struct query *q = p->q;
	const struct fay_schema *schema = &q->an->image->schema;
	Z3_ast any = Z3_mk_false(q->z);

	for (uint32_t i = 0; i < schema->state_count; i++)
		if (schema->states[i].kind == kind)
			any = either(q, any, Z3_mk_eq(q->z, q->now.reg[FAY_RSI], bits(q, i, 64)));
	return both(q, fay_kinds_number(q, p->kinds.reg[FAY_RSI], 64), any);
}

/* [reg, reg + size) lies in the region that the invariant names; the bytes are numbers if the
 * helper reads them. */
static Z3_ast helper_memory(struct proof *p, unsigned reg, Z3_ast size, int64_t most, bool write)
{
	struct query *q = p->q;
	const struct fay_value *v = &q->an->current->loc[reg];
	bool stack = v->tag == REGION_STACK;
	Z3_ast at = q->now.reg[reg], low = stack ? q->now.reg[FAY_RSP] : bits(q, 0, 64), all, room;
	int64_t end = stack ? 0 : fay_proof_region_size(q->an, v->tag);

	all = fay_kinds_is(q, p->kinds.reg[reg], TAG_POINTER + v->tag);
	if (v->kind != KIND_POINTER || (write && !stack && v->tag != REGION_LOCAL))
		return Z3_mk_false(q->z);
	/* end - at cannot wrap once at lies in [low, end] */
	room = Z3_mk_bvsub(q->z, bits(q, (uint64_t)end, 64), at);
	all = both(q, all,
		   both(q, Z3_mk_bvsge(q->z, at, low),
			Z3_mk_bvsle(q->z, at, bits(q, (uint64_t)end, 64))));
	all = both(q, all, Z3_mk_bvule(q->z, size, room));
	if (!stack)
		return all;
	all = both(q, all, fay_proof_between(q, at, v->s.smin, v->s.smax));
	if (!write)
		return both(q, all, fay_kinds_bytes(&p->kinds, q, v->s.smin, v->s.smax + most));
	return both(q, all, fay_kinds_no_return(&p->kinds, q, v->s.smin, v->s.smax + most));
}

static Z3_ast contract(struct proof *p, int helper)
{
	struct query *q = p->q;
	const struct fay_schema *schema = &q->an->image->schema;
	const struct fay_value *rsi = &q->an->current->loc[FAY_RSI];
	Z3_ast size = q->now.reg[FAY_RSI];

	switch (helper) {
	case FAY_HELPER_FLUSH: return both(q, local_start(p), state_number(p, FAY_STATE_TABLE));
	case FAY_HELPER_EMIT:
		if (rsi->kind != KIND_SCALAR || !fay_scalar_is_const(&rsi->s) ||
		    rsi->s.umin >= schema->state_count)
			return Z3_mk_false(q->z);
		size = bits(q, schema->states[rsi->s.umin].row_size, 64);
		return both(q, both(q, local_start(p), state_number(p, FAY_STATE_STREAM)),
			    both(q, Z3_mk_eq(q->z, q->now.reg[FAY_RSI], bits(q, rsi->s.umin, 64)),
				 helper_memory(p, FAY_RDX, size,
					       schema->states[rsi->s.umin].row_size, false)));
	case FAY_HELPER_TRY_READ:
		if (rsi->kind != KIND_SCALAR || rsi->s.umax > FAY_TRY_READ_MAX)
			return Z3_mk_false(q->z);
		return both(
			q,
			both(q, fay_kinds_number(q, p->kinds.reg[FAY_RSI], 64),
			     Z3_mk_bvule(q->z, size, bits(q, FAY_TRY_READ_MAX, 64))),
			both(q, helper_memory(p, FAY_RDI, size, (int64_t)rsi->s.umax, true),
			     q->an->current->loc[FAY_RDX].kind == KIND_POINTER
				     ? helper_memory(p, FAY_RDX, size, (int64_t)rsi->s.umax, false)
				     : fay_kinds_number(q, p->kinds.reg[FAY_RDX], 64)));
	default: return Z3_mk_false(q->z);
	}
}

void fay_proof_helper(struct proof *p, const struct fay_insn *insn)
{
	struct query *q = p->q;
	int called = fay_helper_called(q->an->image, q->an->current, insn);

	if (insn->op == OP_CALL_REG)
		fay_proof_claim(p, FAY_RULE_CFI_CALL, insn,
				"the register called holds the helper's address",
				called < 0 ? Z3_mk_false(q->z)
					   : fay_kinds_is(q, p->kinds.reg[insn->src.reg],
							  TAG_HELPER + (unsigned)called));
	fay_proof_claim(p, FAY_RULE_HLP_STACK, insn, "the stack pointer is a multiple of 16",
			Z3_mk_eq(q->z, Z3_mk_bvand(q->z, q->now.reg[FAY_RSP], bits(q, 15, 64)),
				 bits(q, 8, 64)));
	if (!fay_proof_pending(p, q->an->insn, GOAL_UNREACHABLE))
		fay_proof_claim(p, FAY_RULE_HLP_CONTRACT, insn, "the helper's contract is met",
				contract(p, called));
}
