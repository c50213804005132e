/* SPDX-License-Identifier: MIT */
/*
 * What must hold before each instruction, as formulas over numbers (struct query) and kinds (struct
 * fay_kinds), a file each. This list is made from the operation's row in the instruction table,
 * apart from the checks of the transfer functions: it says once more, and from another side, what
 * those have to establish.
 *
 *   MEM-UNINIT      every register read was written; stack bytes read were written
 *   MEM-POINTER     pointers are only moved, shifted by numbers, subtracted and compared within one
 *		     region
 *   MEM-REGION, MEM-PERMISSION, MEM-BOUNDS, MEM-BELOW-SP, STK-RETURN, MEM-ALIGN, MEM-LEAK memory
 *     operands
 *   ENV-FLAGS, ARI-DIVIDE, CFI-RETURN, CFI-CALL, ENV-SAVED, HLP-STACK, HLP-CONTRACT conditions,
 *     divisions, returns, helpers
 */
#include "smt_obligations.h"

#include <stdlib.h>

#include "verifier/prover/transfer/transfer.h"

bool fay_proof_pending(const struct proof *p, uint32_t index, enum fay_goal goal)
{
	const struct fay_analysis *an = p->q->an;

	for (uint32_t i = 0; i < an->pending_count; i++)
		if (an->pending[i].node == an->node && an->pending[i].insn == index &&
		    an->pending[i].goal == goal)
			return true;
	return false;
}

void fay_proof_claim(struct proof *p, enum fay_rule rule, const struct fay_insn *insn,
		     const char *what, Z3_ast goal)
{
	fay_smt2_put(p->out, p->q, fay_rule_id(rule), insn->address, what, negate(p->q, goal),
		     "unsat");
}

/* ---- registers ---- */

struct reads {
	struct proof *p;
	Z3_ast all;
	unsigned count;
	bool partial; /* the operation may take in bytes that were not written */
};

static void add_demand(struct reads *r, Z3_ast demand)
{
	r->all = r->count++ ? both(r->p->q, r->all, demand) : demand;
}

static void add_read(struct reads *r, unsigned reg, unsigned width, bool whole)
{
	struct query *q = r->p->q;
	struct kind kind = r->p->kinds.reg[reg];
	Z3_ast ok = fay_kinds_number(q, kind, width);

	if (r->partial && q->an->current->loc[reg].kind == KIND_SCALAR &&
	    q->an->current->loc[reg].init != 0xff)
		/* which bytes of the result count as written is followed */
		ok = fay_kinds_is(q, kind, TAG_NUMBER);
	else if (width == 64)
		ok = whole ? fay_kinds_movable(q, kind) : either(q, ok, fay_kinds_pointer(q, kind));
	add_demand(r, ok);
}

static void add_operand(struct reads *r, const struct fay_operand *operand, unsigned width,
			bool value, bool whole)
{
	if (operand->kind == OPERAND_REG && value)
		add_read(r, operand->reg, width, whole);
	if (operand->kind == OPERAND_HIGH && value)
		add_demand(r, fay_kinds_high(r->p->q, r->p->kinds.reg[operand->reg]));
	if (operand->kind != OPERAND_MEM)
		return;
	if (operand->base != FAY_NO_REG)
		add_read(r, operand->base, 64, false);
	if (operand->index != FAY_NO_REG)
		add_read(r, operand->index, 64, false);
}

/* xor r, r and the like: the result does not depend on r. */
static bool idiom(const struct fay_insn *insn)
{
	bool same = insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG &&
		    insn->dst.reg == insn->src.reg;

	return (same && (insn->op == OP_XOR || insn->op == OP_SUB || insn->op == OP_SBB)) ||
	       (insn->op == OP_OR && insn->dst.kind == OPERAND_REG &&
		insn->src.kind == OPERAND_IMM && insn->src.imm == -1);
}

static void registers(struct proof *p, const struct fay_insn *insn)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	struct reads r = { .p = p, .partial = fay_partial_needed(p->q->an->current, insn) };
	unsigned w = insn->width;
	bool whole = w == 64 && (insn->op == OP_MOV || insn->op == OP_XCHG);
	bool count = info->attributes & ATTR_COUNT,
	     double_shift = insn->op == OP_SHLD || insn->op == OP_SHRD;
	bool divide = insn->op == OP_DIV || insn->op == OP_IDIV;

	if (insn->op == OP_PUSH || insn->op == OP_POP || insn->op == OP_CALL_REG || idiom(insn))
		return;
	/* the bytes of vector registers are followed by the analysis alone */
	if (insn->op == OP_VECTOR) {
		add_operand(&r, &insn->dst, 64, false, false);
		add_operand(&r, &insn->src, 64, false, false);
	} else if (insn->op == OP_LEA && w < 64) {
		if (insn->src.base != FAY_NO_REG)
			add_read(&r, insn->src.base, w, false);
		if (insn->src.index != FAY_NO_REG)
			add_read(&r, insn->src.index, w, false);
	} else {
		add_operand(&r, &insn->dst, w,
			    info->dst_read && insn->op != OP_BSF && insn->op != OP_BSR, whole);
		add_operand(&r, &insn->src,
			    count                                          ? 8
			    : insn->op == OP_MOVZX || insn->op == OP_MOVSX ? insn->src_width
									   : w,
			    info->src_read, whole);
		add_operand(&r, &insn->src2, double_shift ? 8 : w, insn->op != OP_MULX, false);
	}
	if (insn->op == OP_MUL1 || insn->op == OP_IMUL1 || divide || insn->op == OP_CQO ||
	    insn->op == OP_CMPXCHG || insn->op == OP_REP_STOS)
		add_read(&r, FAY_RAX, divide && w == 8 ? 16 : w, false);
	if ((divide && w > 8) || insn->op == OP_MULX)
		add_read(&r, FAY_RDX, w, false);
	if (r.count)
		fay_proof_claim(p, FAY_RULE_MEM_UNINIT, insn, "every register read was written",
				r.all);
}

static void pointers(struct proof *p, const struct fay_insn *insn)
{
	struct query *q = p->q;
	struct kind a, b;
	Z3_ast goal, numbers, same;

	if (insn->op == OP_VECTOR || insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS ||
	    insn->width != 64 || idiom(insn) ||
	    !(fay_op_table[insn->op].dst_read || insn->op == OP_IMUL))
		return;
	if (insn->op == OP_XCHG || insn->op == OP_CMOV || insn->op == OP_INC ||
	    insn->op == OP_DEC || insn->op == OP_MOV || insn->op == OP_JMP_TABLE)
		return;
	a = fay_kinds_operand(&p->kinds, q, &insn->dst, 64);
	if (insn->op == OP_IMUL)
		a = fay_kinds_operand(&p->kinds, q, &insn->src2, 64);
	b = fay_kinds_operand(&p->kinds, q, &insn->src,
			      fay_op_table[insn->op].attributes & ATTR_COUNT ? 8 : 64);
	numbers = both(q, fay_kinds_is(q, a, TAG_NUMBER), fay_kinds_is(q, b, TAG_NUMBER));
	same = both(q, fay_kinds_pointer(q, a), Z3_mk_eq(q->z, a.tag, b.tag));
	switch (insn->op) {
	case OP_ADD:
		goal = either(q, fay_kinds_is(q, a, TAG_NUMBER), fay_kinds_is(q, b, TAG_NUMBER));
		break;
	case OP_ADC:
	case OP_SBB:
		goal = both(q, either(q, fay_kinds_is(q, a, TAG_NUMBER), fay_kinds_pointer(q, a)),
			    fay_kinds_is(q, b, TAG_NUMBER));
		break;
	case OP_SUB: goal = either(q, fay_kinds_is(q, b, TAG_NUMBER), same); break;
	case OP_CMP: goal = either(q, numbers, same); break;
	case OP_NOT:
	case OP_NEG:
	case OP_BSWAP: goal = fay_kinds_is(q, a, TAG_NUMBER); break;
	case OP_BSF:
	case OP_BSR: goal = fay_kinds_is(q, b, TAG_NUMBER); break;
	default: goal = numbers;
	}
	fay_proof_claim(p, FAY_RULE_MEM_POINTER, insn,
			"pointers are only moved, shifted by numbers, subtracted and compared "
			"within their region",
			goal);
}

/* ---- memory ---- */

struct place {
	const struct fay_operand *mem;
	struct fay_value at; /* what the invariant says of the address */
	Z3_ast offset;
	unsigned size;
	bool read, write;
};

int64_t fay_proof_region_size(const struct fay_analysis *an, unsigned region)
{
	switch (region) {
	case REGION_EVENT: return sizeof(struct fay_event);
	case REGION_LOCAL: return an->image->header.local_size;
	case REGION_GLOBAL: return an->image->header.global_size;
	default: return (int64_t)an->image->rodata.size;
	}
}

Z3_ast fay_proof_between(struct query *q, Z3_ast v, int64_t low, int64_t high)
{
	return both(q, Z3_mk_bvsge(q->z, v, bits(q, (uint64_t)low, 64)),
		    Z3_mk_bvsle(q->z, v, bits(q, (uint64_t)high, 64)));
}

static void stack_place(struct proof *p, const struct fay_insn *insn, const struct place *m)
{
	struct query *q = p->q;
	int64_t low = m->at.s.smin, high = m->at.s.smax + m->size;
	Z3_ast where = fay_proof_between(q, m->offset, m->at.s.smin, m->at.s.smax);
	bool fixed = fay_scalar_is_const(&m->at.s), whole = insn->op == OP_MOV && m->size == 8;

	if (!fay_proof_pending(p, q->an->insn, GOAL_BOUNDS)) {
		fay_proof_claim(p, FAY_RULE_MEM_BELOW_SP, insn,
				"the access is not below the stack pointer",
				Z3_mk_bvsge(q->z, m->offset, q->now.reg[FAY_RSP]));
		fay_proof_claim(
			p, FAY_RULE_STK_RETURN, insn, "the access is below the return address",
			Z3_mk_bvsle(q->z, m->offset, bits(q, (uint64_t)-(int64_t)m->size, 64)));
	}
	if (m->read) {
		struct kind v = fay_kinds_operand(&p->kinds, q, m->mem, 8 * m->size);
		Z3_ast ok = whole && fixed ? fay_kinds_movable(q, v)
					   : fay_kinds_number(q, v, 8 * m->size);

		if (m->size == 8 && !whole)
			ok = either(q, ok, fay_kinds_pointer(q, v));
		fay_proof_claim(p, FAY_RULE_MEM_UNINIT, insn, "the stack bytes read were written",
				both(q, where, ok));
	}
	if (m->write)
		fay_proof_claim(p, FAY_RULE_STK_RETURN, insn, "no return address is written to",
				both(q, where, fay_kinds_no_return(&p->kinds, q, low, high)));
}

static void stored(struct proof *p, const struct fay_insn *insn, const struct place *m)
{
	struct query *q = p->q;
	struct kind v;

	if (insn->op != OP_MOV || (m->at.tag == REGION_STACK && fay_scalar_is_const(&m->at.s)))
		return;
	v = fay_kinds_operand(&p->kinds, q, &insn->src, 8 * m->size);
	fay_proof_claim(p, m->at.tag == REGION_STACK ? FAY_RULE_MEM_POINTER : FAY_RULE_MEM_LEAK,
			insn, "what is written is a number", fay_kinds_number(q, v, 8 * m->size));
}

static bool find_place(struct proof *p, const struct fay_insn *insn, struct place *m)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	bool dst = insn->dst.kind == OPERAND_MEM;

	if (insn->op == OP_LEA || (!dst && insn->src.kind != OPERAND_MEM) ||
	    fay_helper_loaded(p->q->an->image, insn) >= 0)
		return false;
	m->mem = dst ? &insn->dst : &insn->src;
	m->size = (insn->op == OP_SETCC                                     ? 8
		   : !dst && (insn->op == OP_MOVZX || insn->op == OP_MOVSX) ? insn->src_width
									    : insn->width) /
		  8;
	m->write = dst ? info->dst_written : info->src_written;
	m->read = dst ? info->dst_read : true;
	if (insn->op == OP_VECTOR) {
		m->size = insn->access;
		m->write = dst;
		/* unwritten bytes may enter a vector register, where they are marked */
		m->read = false;
	}
	m->offset = fay_smt_address(p->q, m->mem);
	return fay_transfer_address(p->q->an, m->mem, &m->at);
}

/* The claims about one operand. */
static void place_claims(struct proof *p, const struct fay_insn *insn, const struct place *at)
{
	struct query *q = p->q;
	struct place m = *at;
	struct kind kind;

	kind = fay_kinds_address(&p->kinds, q, m.mem);
	fay_proof_claim(p, FAY_RULE_MEM_REGION, insn,
			"the address is made from a pointer to the region",
			fay_kinds_is(q, kind, TAG_POINTER + m.at.tag));
	if (m.write) {
		fay_proof_claim(p, FAY_RULE_MEM_PERMISSION, insn, "the region may be written to",
				either(q, fay_kinds_is(q, kind, TAG_POINTER + REGION_STACK),
				       either(q, fay_kinds_is(q, kind, TAG_POINTER + REGION_LOCAL),
					      fay_kinds_is(q, kind, TAG_POINTER + REGION_GLOBAL))));
		stored(p, insn, &m);
	}
	if (m.at.tag == REGION_STACK)
		stack_place(p, insn, &m);
	else if (!fay_proof_pending(p, q->an->insn, GOAL_BOUNDS))
		fay_proof_claim(p, FAY_RULE_MEM_BOUNDS, insn, "the access lies within its region",
				fay_proof_between(q, m.offset, 0,
						  fay_proof_region_size(q->an, m.at.tag) -
							  (int64_t)m.size));
	if (insn->locked || (fay_op_table[insn->op].attributes & ATTR_LOCKS))
		fay_proof_claim(p, FAY_RULE_MEM_ALIGN, insn,
				"the locked access is at a multiple of its size",
				Z3_mk_eq(q->z, Z3_mk_bvand(q->z, m.offset, bits(q, m.size - 1, 64)),
					 bits(q, 0, 64)));
}

/* rep movs, rep stos: a known number of elements, as one piece. */
static void string_memory(struct proof *p, const struct fay_insn *insn)
{
	struct query *q = p->q;
	const struct fay_value *count = &q->an->current->loc[FAY_RCX];
	const struct fay_operand *operands[] = { &insn->dst, &insn->src };
	Z3_ast rcx = q->now.reg[FAY_RCX];

	fay_proof_claim(p, FAY_RULE_MEM_BOUNDS, insn,
			"the number of elements is the one that the bounds are for",
			both(q, fay_kinds_number(q, p->kinds.reg[FAY_RCX], 64),
			     Z3_mk_eq(q->z, rcx, bits(q, count->s.umin, 64))));
	for (unsigned i = 0; i < 2 && count->s.umin; i++) {
		struct place m = { .mem = operands[i],
				   .size = (unsigned)count->s.umin * (insn->width / 8),
				   .write = i == 0 };

		if (operands[i]->kind != OPERAND_MEM || count->s.umin > FAY_STACK_HARD)
			continue;
		m.offset = fay_smt_address(q, m.mem);
		if (fay_transfer_address(q->an, m.mem, &m.at))
			place_claims(p, insn, &m);
	}
}

static void memory(struct proof *p, const struct fay_insn *insn)
{
	struct place m;

	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS)
		string_memory(p, insn);
	else if (find_place(p, insn, &m))
		place_claims(p, insn, &m);
}

/* ---- the others ---- */

static void flags(struct proof *p, const struct fay_insn *insn)
{
	struct query *q = p->q;
	uint8_t need = fay_op_table[insn->op].flags_read;

	if (insn->op == OP_JCC || insn->op == OP_CMOV || insn->op == OP_SETCC)
		need |= fay_cc_flags((enum fay_cc)insn->cc);
	if (need)
		fay_proof_claim(p, FAY_RULE_ENV_FLAGS, insn, "the flags read are defined",
				Z3_mk_eq(q->z,
					 Z3_mk_bvand(q->z, bits(q, p->kinds.undefined, 8),
						     bits(q, need, 8)),
					 bits(q, 0, 8)));
}

static void division(struct proof *p, const struct fay_insn *insn)
{
	struct fay_obligation o = { .goal = GOAL_DIVIDE, .rule = FAY_RULE_ARI_DIVIDE };
	Z3_ast goal;

	if (insn->op != OP_DIV && insn->op != OP_IDIV)
		return;
	goal = fay_smt_goal(p->q, &o, insn);
	if (!fay_proof_pending(p, p->q->an->insn, GOAL_DIVIDE))
		fay_proof_claim(p, FAY_RULE_ARI_DIVIDE, insn, "the division does not fault", goal);
	else
		fay_smt_assume(p->q, goal);
}

/* The register leads to one of the places that the graph has edges to. */
static void jump(struct proof *p, const struct fay_insn *insn)
{
	struct query *q = p->q;
	uint32_t first, count = fay_cfg_jumps(q->an->cfg, insn->address, &first);
	Z3_ast goal = Z3_mk_false(q->z);

	for (uint32_t i = first; i < first + count; i++)
		goal = either(q, goal,
			      Z3_mk_eq(q->z, q->now.reg[insn->dst.reg],
				       bits(q, q->an->cfg->jumps[i].to - q->an->image->rodata.start,
					    64)));
	fay_proof_claim(p, FAY_RULE_CFI_INDIRECT, insn,
			"the jump goes to a place that its table names", goal);
}

static void scan(struct proof *p, const struct fay_insn *insn)
{
	struct query *q = p->q;
	Z3_ast goal;

	if (insn->op != OP_BSF && insn->op != OP_BSR)
		return;
	goal = negate(q, Z3_mk_eq(q->z, fay_smt_read(q, &insn->src, insn->width),
				  bits(q, 0, insn->width)));
	fay_proof_claim(p, FAY_RULE_MEM_UNINIT, insn, "the bit scan's source is not zero", goal);
	fay_smt_assume(q, goal);
}

static void ret(struct proof *p, const struct fay_insn *insn)
{
	static const uint8_t saved[] = { FAY_RBX, FAY_RBP, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };
	struct query *q = p->q;
	uint32_t context = q->an->graph->nodes[q->an->node].context;
	Z3_ast all = Z3_mk_eq(q->z, q->now.reg[FAY_RSP], bits(q, 0, 64));

	if (q->an->graph->contexts[context].parent != FAY_NONE) {
		uint32_t n = p->kinds.slots;

		all = n < 2 ? Z3_mk_false(q->z)
			    : both(q,
				   fay_kinds_is(q, p->kinds.slot[n - 1], TAG_RETURN | context << 8),
				   fay_kinds_is(q, p->kinds.slot[n - 2],
						(TAG_RETURN | context << 8) | TAG_UPPER));
		all = both(q, all,
			   Z3_mk_eq(q->z, q->now.reg[FAY_RSP], bits(q, (uint64_t)-4 * n, 64)));
		fay_proof_claim(p, FAY_RULE_CFI_RETURN, insn,
				"at the stack pointer is this call's return address", all);
		return;
	}
	fay_proof_claim(p, FAY_RULE_CFI_RETURN, insn, "the stack pointer is at the return address",
			all);
	all = Z3_mk_true(q->z);
	for (unsigned i = 0; i < sizeof(saved); i++)
		all = both(q, all, fay_kinds_is(q, p->kinds.reg[saved[i]], TAG_ENTRY + saved[i]));
	fay_proof_claim(p, FAY_RULE_ENV_SAVED, insn,
			"callee-saved registers hold what they held at entry", all);
}

void fay_proof_obligations(struct proof *p, const struct fay_insn *insn)
{
	if (fay_proof_pending(p, p->q->an->insn, GOAL_UNREACHABLE))
		return; /* shown not to be reached: nothing else need hold */
	registers(p, insn);
	pointers(p, insn);
	memory(p, insn);
	flags(p, insn);
	division(p, insn);
	scan(p, insn);
	if (insn->op == OP_JMP_TABLE)
		jump(p, insn);
	if (insn->op == OP_RET)
		ret(p, insn);
	if (insn->op == OP_CALL_SLOT || insn->op == OP_CALL_REG)
		fay_proof_helper(p, insn);
}
