/* SPDX-License-Identifier: MIT */
/*
 * How each instruction moves kinds: see smt_kinds.c. Stated apart from the abstract transfer
 * functions, as a second opinion on them.
 */
#include "smt_kinds_parts.h"

static void step_flags(struct fay_kinds *k, const struct fay_insn *insn)
{
	const struct fay_op_info *info = &fay_op_table[insn->op];
	uint8_t written = info->flags_written, undefined = info->flags_undefined;

	if ((info->attributes & ATTR_COUNT) || insn->op == OP_SHLD || insn->op == OP_SHRD) {
		const struct fay_operand *by =
			info->attributes & ATTR_COUNT ? &insn->src : &insn->src2;
		bool fixed = by->kind == OPERAND_IMM;
		uint64_t count = (uint64_t)by->imm & (insn->width == 64 ? 63 : 31);

		if (fixed && !count)
			return; /* flags are kept */
		if (!fixed || count >= insn->width) {
			k->undefined = FLAG_ALL; /* kept or written, depending on the count */
			return;
		}
		if (count == 1 && insn->op <= OP_SAR) {
			written |= FLAG_OF;
			undefined &= (uint8_t)~FLAG_OF;
		}
	}
	if (insn->op == OP_CALL_SLOT || insn->op == OP_CALL_REG)
		undefined = FLAG_ALL;
	k->undefined = (uint8_t)((k->undefined & ~written) | undefined);
}

static struct kind sum_kind(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	struct kind a = fay_kinds_operand(k, q, &insn->dst, insn->width),
		    b = fay_kinds_operand(k, q, &insn->src, insn->width), r;
	Z3_ast a_number = fay_kinds_is(q, a, TAG_NUMBER), b_number = fay_kinds_is(q, b, TAG_NUMBER);

	r = constant_kind(q, TAG_NUMBER);
	if (insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG &&
	    insn->dst.reg == insn->src.reg && insn->op == OP_SUB)
		return r;
	if (insn->op == OP_ADD)
		r.tag = Z3_mk_ite(q->z, b_number, a.tag,
				  Z3_mk_ite(q->z, a_number, b.tag, tag_of(q, TAG_UNREADABLE)));
	else
		r.tag = Z3_mk_ite(q->z, b_number, a.tag,
				  Z3_mk_ite(q->z, Z3_mk_eq(q->z, a.tag, b.tag), r.tag,
					    tag_of(q, TAG_UNREADABLE)));
	return r;
}

static void step_push(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	int64_t depth = 4 * (int64_t)k->slots + 8;
	struct kind v = fay_kinds_operand(k, q, &insn->src, 64);

	if (insn->op == OP_CALL) {
		const struct fay_graph *g = q->an->graph;

		v = constant_kind(q, TAG_RETURN | g->nodes[g->nodes[q->an->node].succ[0]].context
							  << 8);
	}
	if (depth > (int64_t)FAY_STACK_HARD)
		return;
	fay_kinds_depth(k, q, (uint32_t)(depth / 4));
	fay_kinds_store_pair(k, q, -depth, v);
}

/* What the helper may write: the bytes of fay_try_read, all written if their number is known. */
static void step_helper(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	static const uint8_t clobbered[] = { FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					     FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };
	const struct fay_value *to = &q->an->current->loc[FAY_RDI],
			       *size = &q->an->current->loc[FAY_RSI];

	if (fay_helper_called(q->an->image, q->an->current, insn) == FAY_HELPER_TRY_READ &&
	    to->kind == KIND_POINTER && to->tag == REGION_STACK && size->kind == KIND_SCALAR &&
	    size->s.umax <= FAY_TRY_READ_MAX) {
		int64_t low = to->s.smin, high = to->s.smax + (int64_t)size->s.umax;

		if (inside(k, low, high)) {
			fay_kinds_forget_bytes(k, q, low, high);
			if (fay_scalar_is_const(&to->s))
				fay_kinds_store_bytes(k, q, low, low + (int64_t)size->s.umin,
						      Z3_mk_true(q->z));
		}
	}
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		k->reg[clobbered[i]] = constant_kind(q, TAG_UNREADABLE);
	k->reg[FAY_RAX] = constant_kind(q, TAG_NUMBER);
}

static void step_implicit(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	struct kind number = constant_kind(q, TAG_NUMBER);

	switch (insn->op) {
	case OP_MUL1:
	case OP_IMUL1:
	case OP_DIV:
	case OP_IDIV:
		fay_kinds_write_reg(k, q, FAY_RAX, insn->width == 8 ? 16 : insn->width, number);
		if (insn->width > 8)
			fay_kinds_write_reg(k, q, FAY_RDX, insn->width, number);
		return;
	case OP_RDTSC: k->reg[FAY_RAX] = k->reg[FAY_RDX] = number; return;
	case OP_CQO: fay_kinds_write_reg(k, q, FAY_RDX, insn->width, number); return;
	case OP_CMPXCHG:
		fay_kinds_write_reg(k, q, FAY_RAX, insn->width == 32 ? 64 : insn->width, number);
		fay_kinds_write_operand(k, q, &insn->dst, insn->width, number);
		return;
	case OP_XADD:
		fay_kinds_write_operand(k, q, &insn->dst, insn->width, number);
		fay_kinds_write_operand(k, q, &insn->src, insn->width, number);
		return;
	default:
		if (fay_op_table[insn->op].dst_written)
			fay_kinds_write_operand(k, q, &insn->dst,
						insn->op == OP_SETCC ? 8 : insn->width, number);
	}
}

/* Stack bytes of [low, high) are written with what is not followed here. */
static void forget_kinds(struct fay_kinds *k, struct query *q, int64_t low, int64_t high)
{
	k->low = k->high = 0;
	if (!inside(k, low, high))
		return;
	k->low = low & ~(int64_t)3;
	k->high = high;
	for (int64_t o = k->low; o < k->high; o += 4)
		k->slot[slot_of(o)] = fresh_kind(q);
}

/* rep movs, rep stos: pointers stay pointers, rcx a number. */
static void step_string(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	const struct fay_value *to = &q->an->current->loc[FAY_RDI],
			       *count = &q->an->current->loc[FAY_RCX];

	k->low = k->high = 0;
	if (to->kind == KIND_POINTER && to->tag == REGION_STACK && count->s.umax <= FAY_STACK_HARD)
		forget_kinds(k, q, to->s.smin,
			     to->s.smax + (int64_t)(count->s.umax * (insn->width / 8)));
	k->reg[FAY_RCX] = constant_kind(q, TAG_NUMBER);
}

static void step_vector(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	struct fay_value at;

	k->low = k->high = 0;
	if (insn->dst.kind == OPERAND_REG)
		fay_kinds_write_reg(k, q, insn->dst.reg, insn->width, constant_kind(q, TAG_NUMBER));
	if (insn->dst.kind == OPERAND_MEM && fay_transfer_address(q->an, &insn->dst, &at) &&
	    at.tag == REGION_STACK)
		forget_kinds(k, q, at.s.smin, at.s.smax + insn->access);
}

void fay_kinds_opaque(struct fay_kinds *k, struct query *q, const struct fay_insn *insn,
		      const struct fay_state *s)
{
	if (insn->op == OP_VECTOR)
		k->undefined = s->flags_undefined;
	else if (insn->op != OP_REP_MOVS && insn->op != OP_REP_STOS)
		return;
	for (int64_t o = k->low; o < k->high; o += 4)
		fay_kinds_assume_slot(k, q, s, slot_of(o));
}

/* Bytes of a register, or of a constant, that were written and are zero. */
static Z3_ast zero_bytes(struct fay_kinds *k, struct query *q, const struct fay_operand *operand)
{
	Z3_ast all = bits(q, 0, 8), number;

	if (operand->kind != OPERAND_REG && operand->kind != OPERAND_IMM)
		return all;
	number = operand->kind == OPERAND_REG ? q->now.reg[operand->reg]
					      : bits(q, (uint64_t)operand->imm, 64);
	for (unsigned b = 0; b < 8; b++)
		all = Z3_mk_bvor(
			q->z, all,
			Z3_mk_ite(q->z,
				  Z3_mk_eq(q->z, Z3_mk_extract(q->z, 8 * b + 7, 8 * b, number),
					   bits(q, 0, 8)),
				  bits(q, 1u << b, 8), bits(q, 0, 8)));
	return operand->kind == OPERAND_REG ? Z3_mk_bvand(q->z, all, k->reg[operand->reg].init)
					    : all;
}

/*
 * The bytes of the result that depend on written bytes alone, where not all that is read was
 * written: a byte of a sum or product on those up to it, of any other of these operations on the
 * same byte.
 */
static Z3_ast partial_bytes(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	Z3_ast all = bits(q, 0xff, 8), upper = bits(q, insn->width == 32 ? 0xf0 : 0, 8);
	uint8_t regs[3];
	unsigned count = fay_partial_reads(insn, regs);

	for (unsigned i = 0; i < count; i++)
		all = Z3_mk_bvand(q->z, all, k->reg[regs[i]].init);
	all = Z3_mk_bvor(q->z, all, upper);
	switch (insn->op) {
	case OP_AND:
		return Z3_mk_bvor(q->z, all,
				  Z3_mk_bvor(q->z, zero_bytes(k, q, &insn->dst),
					     zero_bytes(k, q, &insn->src)));
	case OP_MOV:
	case OP_CMOV:
	case OP_OR:
	case OP_XOR:
	case OP_NOT: return all;
	default:
		/* the upper half does not hold what a carry would make of it */
		if (insn->width == 32) {
			Z3_ast low = Z3_mk_bvand(q->z, all, bits(q, 0xf, 8));

			low = Z3_mk_bvand(q->z, low,
					  Z3_mk_bvnot(q->z, Z3_mk_bvadd(q->z, low, bits(q, 1, 8))));
			return Z3_mk_bvor(q->z, low, upper);
		}
		return Z3_mk_bvand(q->z, all,
				   Z3_mk_bvnot(q->z, Z3_mk_bvadd(q->z, all, bits(q, 1, 8))));
	}
}

static void step_whole(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	struct kind a, b;
	Z3_ast c;
	int helper;

	step_flags(k, insn);
	switch (insn->op) {
	case OP_MOV:
		helper = fay_helper_loaded(q->an->image, insn);
		if (helper >= 0)
			fay_kinds_write_reg(k, q, insn->dst.reg, 64,
					    constant_kind(q, TAG_HELPER + (unsigned)helper));
		else
			fay_kinds_write_operand(k, q, &insn->dst, insn->width,
						fay_kinds_operand(k, q, &insn->src, insn->width));
		return;
	case OP_LEA:
		fay_kinds_write_reg(k, q, insn->dst.reg, insn->width,
				    fay_kinds_address(k, q, &insn->src));
		return;
	case OP_ADD:
	case OP_SUB:
		fay_kinds_write_operand(k, q, &insn->dst, insn->width,
					insn->width == 64 ? sum_kind(k, q, insn)
							  : constant_kind(q, TAG_NUMBER));
		return;
	case OP_ADC:
	case OP_SBB:
		a = fay_kinds_operand(k, q, &insn->dst, insn->width);
		b = fay_kinds_operand(k, q, &insn->src, insn->width);
		c = both(q, fay_kinds_pointer(q, a), fay_kinds_is(q, b, TAG_NUMBER));
		if (insn->width == 64 &&
		    !(insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG &&
		      insn->dst.reg == insn->src.reg))
			fay_kinds_write_operand(
				k, q, &insn->dst, 64,
				(struct kind){ Z3_mk_ite(q->z, c, a.tag, tag_of(q, TAG_NUMBER)),
					       bits(q, 0xff, 8) });
		else
			fay_kinds_write_operand(k, q, &insn->dst, insn->width,
						constant_kind(q, TAG_NUMBER));
		return;
	case OP_INC:
	case OP_DEC:
		fay_kinds_write_operand(k, q, &insn->dst, insn->width,
					insn->width == 64 ? fay_kinds_operand(k, q, &insn->dst, 64)
							  : constant_kind(q, TAG_NUMBER));
		return;
	case OP_XCHG:
		a = fay_kinds_operand(k, q, &insn->dst, insn->width);
		b = fay_kinds_operand(k, q, &insn->src, insn->width);
		fay_kinds_write_operand(k, q, &insn->dst, insn->width, b);
		fay_kinds_write_operand(k, q, &insn->src, insn->width, a);
		return;
	case OP_CMOV:
		a = fay_kinds_operand(k, q, &insn->dst, insn->width);
		b = fay_kinds_operand(k, q, &insn->src, insn->width);
		c = fay_smt_condition(q, (enum fay_cc)insn->cc);
		a = (struct kind){ Z3_mk_ite(q->z, c, b.tag, a.tag),
				   Z3_mk_ite(q->z, c, b.init, a.init) };
		fay_kinds_write_operand(k, q, &insn->dst, insn->width, a);
		return;
	case OP_PUSH:
	case OP_CALL: step_push(k, q, insn); return;
	case OP_POP:
		k->reg[insn->dst.reg] = fay_kinds_load_stack(k, q, -4 * (int64_t)k->slots, 8);
		return;
	case OP_CALL_SLOT:
	case OP_CALL_REG: step_helper(k, q, insn); return;
	case OP_VECTOR: step_vector(k, q, insn); return;
	case OP_REP_MOVS:
	case OP_REP_STOS: step_string(k, q, insn); return;
	case OP_LEAVE:
		if (q->an->current->loc[FAY_RBP].kind == KIND_POINTER &&
		    q->an->current->loc[FAY_RBP].tag == REGION_STACK)
			k->reg[FAY_RBP] =
				fay_kinds_load_stack(k, q, q->an->current->loc[FAY_RBP].s.smin, 8);
		return;
	case OP_MULX:
		fay_kinds_write_operand(k, q, &insn->src2, insn->width,
					constant_kind(q, TAG_NUMBER));
		fay_kinds_write_operand(k, q, &insn->dst, insn->width,
					constant_kind(q, TAG_NUMBER));
		return;
	default: step_implicit(k, q, insn);
	}
}

void fay_kinds_step(struct fay_kinds *k, struct query *q, const struct fay_insn *insn)
{
	bool partial = fay_partial_needed(q->an->current, insn);
	Z3_ast written = partial ? partial_bytes(k, q, insn) : NULL;

	step_whole(k, q, insn);
	if (!partial)
		return;
	k->reg[insn->dst.reg].init = written;
	if (fay_op_table[insn->op].flags_written && insn->op != OP_AND)
		k->undefined = FLAG_ALL;
}
