/* SPDX-License-Identifier: MIT */
/*
 * The semantics (semantics*.c) over Z3's bit vectors: what each instruction does to the terms of
 * registers, flags and slots. What an operation does not define, and what is not modelled, gives
 * unknowns, so that an omission costs proofs and not soundness.
 */
#include "smt_terms.h"

#include "verifier/isa/isa.h"

void fay_smt_forget_flags(struct query *q)
{
	for (unsigned f = 0; f < FLAGS; f++)
		q->now.flag[f] = fresh_bool(q);
}

/* ---- terms ---- */

/* The semantics see `semantics`, the first member. */
struct smt_step {
	struct fay_semantics semantics;
	struct query *q;
};

static struct query *query_of(struct fay_semantics *s)
{
	return ((struct smt_step *)s)->q;
}

Z3_ast fay_smt_lower(struct query *q, struct fay_term t)
{
	if (!t.known)
		return t.ast;
	if (t.width == 0)
		return t.value ? Z3_mk_true(q->z) : Z3_mk_false(q->z);
	if (t.width <= 64)
		return bits(q, (uint64_t)t.value, t.width);
	return Z3_mk_concat(q->z, bits(q, (uint64_t)(t.value >> 64), t.width - 64u),
			    bits(q, (uint64_t)t.value, 64));
}

static struct fay_term lift(struct query *q, Z3_ast ast, unsigned width)
{
	uint64_t number;

	if (width == 0) {
		Z3_lbool value = Z3_get_bool_value(q->z, ast);

		if (value != Z3_L_UNDEF)
			return fay_term_bool(value == Z3_L_TRUE);
	} else if (width <= 64 && Z3_get_ast_kind(q->z, ast) == Z3_NUMERAL_AST &&
		   Z3_get_numeral_uint64(q->z, ast, &number)) {
		return fay_term_const(number, width);
	}
	return (struct fay_term){ .ast = ast, .width = (uint8_t)width };
}

static Z3_ast build_logic(struct query *q, enum fay_term_op op, const struct fay_term *args,
			  Z3_ast a, Z3_ast b)
{
	bool boolean = args[0].width == 0;

	switch (op) {
	case TERM_NOT: return boolean ? Z3_mk_not(q->z, a) : Z3_mk_bvnot(q->z, a);
	case TERM_AND: return boolean ? both(q, a, b) : Z3_mk_bvand(q->z, a, b);
	case TERM_OR: return boolean ? either(q, a, b) : Z3_mk_bvor(q->z, a, b);
	default: return boolean ? Z3_mk_xor(q->z, a, b) : Z3_mk_bvxor(q->z, a, b);
	}
}

struct fay_term fay_smt_build_term(struct query *q, enum fay_term_op op,
				   const struct fay_term *args, unsigned count, unsigned width,
				   unsigned low)
{
	Z3_context z = q->z;
	Z3_ast a = fay_smt_lower(q, args[0]), b = count > 1 ? fay_smt_lower(q, args[1]) : NULL,
	       r = NULL;

	switch (op) {
	case TERM_NOT:
	case TERM_AND:
	case TERM_OR:
	case TERM_XOR: r = build_logic(q, op, args, a, b); break;
	case TERM_NEG: r = Z3_mk_bvneg(z, a); break;
	case TERM_ADD: r = Z3_mk_bvadd(z, a, b); break;
	case TERM_SUB: r = Z3_mk_bvsub(z, a, b); break;
	case TERM_MUL: r = Z3_mk_bvmul(z, a, b); break;
	case TERM_SHL: r = Z3_mk_bvshl(z, a, b); break;
	case TERM_SHR: r = Z3_mk_bvlshr(z, a, b); break;
	case TERM_SAR: r = Z3_mk_bvashr(z, a, b); break;
	case TERM_UDIV: r = Z3_mk_bvudiv(z, a, b); break;
	case TERM_UREM: r = Z3_mk_bvurem(z, a, b); break;
	case TERM_SDIV: r = Z3_mk_bvsdiv(z, a, b); break;
	case TERM_SREM: r = Z3_mk_bvsrem(z, a, b); break;
	case TERM_EQ: r = Z3_mk_eq(z, a, b); break;
	case TERM_ULT: r = Z3_mk_bvult(z, a, b); break;
	case TERM_ULE: r = Z3_mk_bvule(z, a, b); break;
	case TERM_SLT: r = Z3_mk_bvslt(z, a, b); break;
	case TERM_SLE: r = Z3_mk_bvsle(z, a, b); break;
	case TERM_ITE: r = Z3_mk_ite(z, a, b, fay_smt_lower(q, args[2])); break;
	case TERM_EXTRACT: r = Z3_mk_extract(z, low + width - 1, low, a); break;
	case TERM_ZEXT: r = Z3_mk_zero_ext(z, width - args[0].width, a); break;
	case TERM_SEXT: r = Z3_mk_sign_ext(z, width - args[0].width, a); break;
	case TERM_CONCAT: r = Z3_mk_concat(z, a, b); break;
	case TERM_OP_COUNT: break;
	}
	return (struct fay_term){ .ast = r, .width = (uint8_t)width };
}

static struct fay_term build(struct fay_semantics *s, enum fay_term_op op,
			     const struct fay_term *args, unsigned count, unsigned width,
			     unsigned low)
{
	return fay_smt_build_term(query_of(s), op, args, count, width, low);
}

/* ---- the machine ---- */

static unsigned flag_index(uint8_t flag)
{
	switch (flag) {
	case FLAG_CF: return CF;
	case FLAG_ZF: return ZF;
	case FLAG_SF: return SF;
	case FLAG_OF: return OF;
	default: return PF;
	}
}

static struct fay_term smt_read(struct fay_semantics *s, const struct fay_operand *o,
				unsigned width)
{
	struct query *q = query_of(s);

	return lift(q, fay_smt_read(q, o, width), width);
}

static void smt_write(struct fay_semantics *s, const struct fay_operand *o, unsigned width,
		      struct fay_term v)
{
	struct query *q = query_of(s);

	fay_smt_write(q, o, width, fay_smt_lower(q, v));
}

static struct fay_term smt_address(struct fay_semantics *s, const struct fay_operand *o)
{
	struct query *q = query_of(s);

	return lift(q, fay_smt_address(q, o), 64);
}

static struct fay_term smt_flag(struct fay_semantics *s, uint8_t flag)
{
	struct query *q = query_of(s);

	return lift(q, q->now.flag[flag_index(flag)], 0);
}

static void smt_flag_set(struct fay_semantics *s, struct fay_term condition, uint8_t flag,
			 struct fay_term value)
{
	struct query *q = query_of(s);
	Z3_ast *f = &q->now.flag[flag_index(flag)];

	if (condition.known && !condition.value)
		return;
	*f = fay_smt_lower(q, fay_term_ite(s, condition, value, lift(q, *f, 0)));
}

static void smt_flag_undefine(struct fay_semantics *s, struct fay_term condition, uint8_t flags)
{
	struct query *q = query_of(s);

	for (unsigned bit = 1; bit <= FLAG_ALL; bit <<= 1)
		if (flags & bit)
			smt_flag_set(s, condition, (uint8_t)bit,
				     (struct fay_term){ .ast = fresh_bool(q) });
}

static struct fay_term smt_unknown(struct fay_semantics *s, struct fay_term current)
{
	return (struct fay_term){ .ast = fresh_bits(query_of(s), current.width),
				  .width = current.width };
}

static void smt_push(struct fay_semantics *s, struct fay_term v)
{
	struct query *q = query_of(s);
	int64_t depth = fay_state_depth(q->an->current) + 8;

	if (depth > (int64_t)FAY_STACK_HARD)
		return;
	fay_smt_set_depth(q, (uint32_t)(depth / 4));
	fay_smt_stack_store(q, -depth, 8, fay_smt_lower(q, v));
}

/* The stack pointer itself follows the abstract state (fay_smt_after). */
static struct fay_term smt_pop(struct fay_semantics *s, unsigned reg)
{
	struct query *q = query_of(s);
	const struct fay_value *at = &q->an->current->loc[reg];

	if (at->kind != KIND_POINTER || at->tag != REGION_STACK || !fay_scalar_is_const(&at->s))
		return smt_unknown(s, fay_term_const(0, 64));
	return lift(q, fay_smt_stack_load(q, at->s.smin, 8), 64);
}

/* Where the code is loaded is not known. */
static struct fay_term smt_code_address(struct fay_semantics *s, uint64_t address)
{
	(void)address;
	return smt_unknown(s, fay_term_const(0, 64));
}

/* The graph is walked in smt_query.c. */
static void smt_jump(struct fay_semantics *s, struct fay_term condition, struct fay_term target)
{
	(void)s;
	(void)condition;
	(void)target;
}

/* An obligation of its own (GOAL_DIVIDE); after it there is nothing to say. */
static void smt_divide_error(struct fay_semantics *s, struct fay_term condition)
{
	(void)s;
	(void)condition;
}

/* The helper's contract: which registers and, for fay_try_read, which stack bytes it may write, and
 * what it returns. */
static void smt_call_helper(struct fay_semantics *s)
{
	static const uint8_t clobbered[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					     FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };
	struct query *q = query_of(s);
	const struct fay_value *to = &q->an->current->loc[FAY_RDI],
			       *size = &q->an->current->loc[FAY_RSI];
	bool try_read =
		fay_helper_called(q->an->image, q->an->current, s->insn) == FAY_HELPER_TRY_READ;
	Z3_ast result;

	for (unsigned i = 0; i < sizeof(clobbered); i++)
		q->now.reg[clobbered[i]] = fresh_bits(q, 64);
	fay_smt_forget_flags(q);
	result = q->now.reg[FAY_RAX];
	if (try_read)
		result = Z3_mk_bvadd(q->z, result, bits(q, 1, 64)); /* -1 or 0 */
	fay_smt_assume(q, Z3_mk_implies(q->z, q->now.condition,
					Z3_mk_bvule(q->z, result, bits(q, 1, 64))));
	if (try_read && to->kind == KIND_POINTER && to->tag == REGION_STACK)
		fay_smt_stack_forget(q, to->s.smin,
				     size->kind == KIND_SCALAR && size->s.umax <= FAY_TRY_READ_MAX
					     ? to->s.smax + (int64_t)size->s.umax
					     : 0);
}

/* The numbers in vector registers are not modelled: what leaves them is unknown. */
static void smt_vector(struct fay_semantics *s)
{
	struct query *q = query_of(s);
	const struct fay_insn *insn = s->insn;

	if (insn->dst.kind == OPERAND_MEM)
		fay_smt_store_unknown(q, &insn->dst, insn->access);
	else if (insn->dst.kind == OPERAND_REG)
		fay_smt_write_reg(q, insn->dst.reg, insn->width, fresh_bits(q, insn->width));
	if (fay_vector_row(insn)->flags & VFLAG_FLAGS)
		fay_smt_forget_flags(q);
}

/* What is written to the stack is unknown after; other memory is unknown at every read anyway. */
static void smt_string(struct fay_semantics *s, struct fay_term count, const struct fay_term *fill)
{
	struct query *q = query_of(s);
	const struct fay_value *to = &q->an->current->loc[FAY_RDI],
			       *n = &q->an->current->loc[FAY_RCX];

	(void)count;
	(void)fill;
	if (to->kind != KIND_POINTER || to->tag != REGION_STACK)
		return;
	if (n->kind != KIND_SCALAR || n->s.umax > FAY_MAX_STRING)
		fay_smt_stack_forget(q, INT32_MIN, 0);
	else
		fay_smt_stack_forget(
			q, to->s.smin,
			to->s.smax < 0 ? to->s.smax + (int64_t)(n->s.umax * s->insn->width / 8)
				       : 0);
}

static const struct fay_semantics_ops smt_ops = {
	.build = build,
	.read = smt_read,
	.write = smt_write,
	.address = smt_address,
	.flag = smt_flag,
	.flag_set = smt_flag_set,
	.flag_undefine = smt_flag_undefine,
	.unknown = smt_unknown,
	.push = smt_push,
	.pop = smt_pop,
	.code_address = smt_code_address,
	.jump = smt_jump,
	.divide_error = smt_divide_error,
	.call_helper = smt_call_helper,
	.string = smt_string,
	.vector = smt_vector,
};

Z3_ast fay_smt_condition(struct query *q, enum fay_cc cc)
{
	struct smt_step step = { .semantics = { .ops = &smt_ops }, .q = q };

	return fay_smt_lower(q, fay_semantics_condition(&step.semantics, cc));
}

void fay_smt_step(struct query *q, const struct fay_insn *insn)
{
	struct smt_step step = { .semantics = { .ops = &smt_ops, .insn = insn, .exact = q->exact },
				 .q = q };

	fay_semantics_run(&step.semantics);
}
