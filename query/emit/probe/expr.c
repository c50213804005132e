/* SPDX-License-Identifier: MIT */
/*
 * Expressions to LLVM IR. Every operation is total and free of branches: `&&` evaluates both sides,
 * `? :` is a select, and a division replaces a divisor of 0 or -1 by 1 first.
 */
#include <string.h>

#include "probe_private.h"

uint64_t fay_codegen_string_word(const struct fay_expr *string, uint32_t from, uint64_t *mask)
{
	unsigned char bytes[8] = { 0 }, ones[8] = { 0 };
	for (uint32_t i = 0; i < 8 && from + i < string->length; i++) {
		bytes[i] = (unsigned char)string->string[from + i];
		ones[i] = 0xff;
	}
	uint64_t word = 0;
	*mask = 0;
	for (unsigned i = 8; i-- > 0;) {
		word = word << 8 | bytes[i];
		*mask = *mask << 8 | ones[i];
	}
	return word;
}

static struct fay_operand_value constant(const struct fay_codegen *g, const struct fay_expr *expr)
{
	uint64_t mask;
	if (expr->type == TYPE_STRING)
		return (struct fay_operand_value){
			fay_codegen_i64(g, fay_codegen_string_word(expr, 0, &mask)),
			fay_codegen_i64(g, fay_codegen_string_word(expr, 8, &mask))
		};
	return (struct fay_operand_value){ expr->type == TYPE_BOOL
						   ? LLVMConstInt(g->i1, expr->value != 0, 0)
						   : fay_codegen_i64(g, (uint64_t)expr->value),
					   NULL };
}

static struct fay_operand_value field(struct fay_codegen *g, const struct fay_expr *expr)
{
	const struct fay_field *f = &fay_fields[expr->value];
	if (fay_field_is_inlined(f))
		return (struct fay_operand_value){ LLVMConstInt(g->i1, g->inlined, 0), NULL };
	if (f->size == 0 && fay_check_of_kernel(&g->p->checked)) /* Failed */
		return (struct fay_operand_value){
			fay_codegen_is_error(
				g,
				fay_codegen_load(g, g->event, offsetof(struct fay_event, retval))),
			NULL
		};
	if (f->size == 0)
		return (struct fay_operand_value){ LLVMConstInt(g->i1, g->failed, 0), NULL };
	if (g->failed && f->offset == offsetof(struct fay_event, retval))
		return (struct fay_operand_value){ fay_codegen_i64(g, 0), NULL };
	if (f->size == FAY_COMM_SIZE)
		return (struct fay_operand_value){ fay_codegen_load(g, g->event, f->offset),
						   fay_codegen_load(g, g->event, f->offset + 8u) };
	if (f->size == 8)
		return (struct fay_operand_value){ fay_codegen_load(g, g->event, f->offset), NULL };
	LLVMValueRef at = fay_codegen_at(g, g->event, fay_codegen_i64(g, f->offset));
	LLVMValueRef load =
		LLVMBuildLoad2(g->builder, LLVMInt32TypeInContext(g->context), at, f->name);
	LLVMSetAlignment(load, 4);
	return (struct fay_operand_value){ LLVMBuildZExt(g->builder, load, g->i64, ""), NULL };
}

static LLVMValueRef divide(struct fay_codegen *g, LLVMValueRef x, LLVMValueRef y, bool quotient)
{
	if (g->bpf)
		return fay_bpf_divide(g, x, y, quotient);
	return quotient ? LLVMBuildSDiv(g->builder, x, y, "") : LLVMBuildSRem(g->builder, x, y, "");
}

/* x / y or x % y: 0 for y = 0; for y = -1 what wrapping gives (-x, 0). */
static LLVMValueRef division(struct fay_codegen *g, const struct fay_expr *expr, LLVMValueRef x,
			     LLVMValueRef y)
{
	LLVMBuilderRef b = g->builder;
	bool quotient = expr->op == EXPR_DIV;
	LLVMValueRef zero = fay_codegen_i64(g, 0), minus_one = fay_codegen_i64(g, UINT64_MAX);
	LLVMValueRef at_minus_one = quotient ? LLVMBuildNeg(b, x, "") : zero;
	if (fay_expr_is_constant(expr->b)) {
		if (expr->b->value == 0)
			return zero;
		if (expr->b->value == -1)
			return at_minus_one;
		return divide(g, x, y, quotient);
	}
	LLVMValueRef is_zero = LLVMBuildICmp(b, LLVMIntEQ, y, zero, "");
	LLVMValueRef is_minus_one = LLVMBuildICmp(b, LLVMIntEQ, y, minus_one, "");
	LLVMValueRef one = fay_codegen_i64(g, 1);
	LLVMValueRef divisor =
		LLVMBuildSelect(b, LLVMBuildOr(b, is_zero, is_minus_one, ""), one, y, "divisor");
	LLVMValueRef result = divide(g, x, divisor, quotient);
	result = LLVMBuildSelect(b, is_minus_one, at_minus_one, result, "");
	return LLVMBuildSelect(b, is_zero, zero, result, "");
}

static LLVMValueRef arithmetic(struct fay_codegen *g, const struct fay_expr *expr, LLVMValueRef x,
			       LLVMValueRef y)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef count = y;
	if (expr->op == EXPR_SHL || expr->op == EXPR_SHR || expr->op == EXPR_SHR_LOGICAL)
		count = LLVMBuildAnd(b, y, fay_codegen_i64(g, 63), "");
	switch (expr->op) {
	case EXPR_ADD: return LLVMBuildAdd(b, x, y, "");
	case EXPR_SUB: return LLVMBuildSub(b, x, y, "");
	case EXPR_MUL: return LLVMBuildMul(b, x, y, "");
	case EXPR_DIV:
	case EXPR_MOD: return division(g, expr, x, y);
	case EXPR_SHL: return LLVMBuildShl(b, x, count, "");
	case EXPR_SHR: return LLVMBuildAShr(b, x, count, "");
	case EXPR_SHR_LOGICAL: return LLVMBuildLShr(b, x, count, "");
	case EXPR_BIT_AND:
	case EXPR_AND: return LLVMBuildAnd(b, x, y, "");
	case EXPR_BIT_OR:
	case EXPR_OR: return LLVMBuildOr(b, x, y, "");
	default: /* EXPR_BIT_XOR */ return LLVMBuildXor(b, x, y, "");
	}
}

static LLVMValueRef comparison(struct fay_codegen *g, const struct fay_expr *expr,
			       struct fay_operand_value x, struct fay_operand_value y)
{
	LLVMBuilderRef b = g->builder;
	bool is_signed = expr->a->type != TYPE_TIME;
	LLVMIntPredicate predicate;
	switch (expr->op) {
	case EXPR_EQ: predicate = LLVMIntEQ; break;
	case EXPR_NE: predicate = LLVMIntNE; break;
	case EXPR_LT: predicate = is_signed ? LLVMIntSLT : LLVMIntULT; break;
	case EXPR_LE: predicate = is_signed ? LLVMIntSLE : LLVMIntULE; break;
	case EXPR_GT: predicate = is_signed ? LLVMIntSGT : LLVMIntUGT; break;
	default: predicate = is_signed ? LLVMIntSGE : LLVMIntUGE; break;
	}
	return LLVMBuildICmp(b, predicate, x.low, y.low, "");
}

static LLVMValueRef square_part(struct fay_codegen *g, const struct fay_expr *expr, LLVMValueRef x)
{
	if (g->bpf)
		return fay_bpf_square_part(g, x, (int)expr->value);
	LLVMBuilderRef b = g->builder;
	LLVMTypeRef i128 = LLVMInt128TypeInContext(g->context);
	LLVMValueRef wide = LLVMBuildSExt(b, x, i128, "");
	LLVMValueRef square = LLVMBuildMul(b, wide, wide, "square");
	LLVMValueRef part =
		LLVMBuildLShr(b, square, LLVMConstInt(i128, 32 * (uint64_t)expr->value, 0), "");
	part = LLVMBuildTrunc(b, part, g->i64, "");
	return LLVMBuildAnd(b, part, fay_codegen_i64(g, UINT32_MAX), "");
}

static LLVMValueRef bucket(struct fay_codegen *g, const struct fay_expr *expr, LLVMValueRef x,
			   LLVMValueRef takes_part)
{
	LLVMValueRef found = expr->value == FAY_MERGE_QUANTILE ? fay_codegen_quantile_bucket(g, x)
							       : fay_codegen_log2_bucket(g, x);
	return takes_part ? LLVMBuildSelect(g->builder, takes_part, found,
					    fay_codegen_i64(g, FAY_BUCKET_NONE), "")
			  : found;
}

static struct fay_operand_value operation(struct fay_codegen *g, const struct fay_expr *expr)
{
	LLVMBuilderRef b = g->builder;
	if (expr->a->type == TYPE_STRING)
		return (struct fay_operand_value){ fay_codegen_string(g, expr), NULL };
	struct fay_operand_value x = fay_codegen_expr(g, expr->a), y = { NULL, NULL }, z = y, r = y;
	if (expr->b)
		y = fay_codegen_expr(g, expr->b);
	if (expr->c)
		z = fay_codegen_expr(g, expr->c);
	switch (expr->op) {
	case EXPR_NEG: r.low = LLVMBuildNeg(b, x.low, ""); break;
	case EXPR_BIT_NOT:
	case EXPR_NOT: r.low = LLVMBuildNot(b, x.low, ""); break;
	case EXPR_EQ:
	case EXPR_NE:
	case EXPR_LT:
	case EXPR_LE:
	case EXPR_GT:
	case EXPR_GE: r.low = comparison(g, expr, x, y); break;
	case EXPR_SQUARE: r.low = square_part(g, expr, x.low); break;
	case EXPR_BUCKET: r.low = bucket(g, expr, x.low, y.low); break;
	case EXPR_COND:
		r.low = LLVMBuildSelect(b, x.low, y.low, z.low, "");
		if (y.high)
			r.high = LLVMBuildSelect(b, x.low, y.high, z.high, "");
		break;
	default: r.low = arithmetic(g, expr, x.low, y.low); break;
	}
	return r;
}

/* The bits of a string's bytes below `limit` in its word that begins with byte `from`. */
static LLVMValueRef limited(struct fay_codegen *g, LLVMValueRef word, uint32_t from, uint32_t limit)
{
	uint32_t bytes = limit > from ? limit - from : 0;
	if (!limit || bytes >= 8)
		return word;
	return LLVMBuildAnd(g->builder, word, fay_codegen_i64(g, (UINT64_C(1) << 8 * bytes) - 1),
			    "");
}

/* What lies at an address, by a function of query/runtime/reads.c. */
static struct fay_operand_value member(struct fay_codegen *g, const struct fay_expr *expr,
				       struct fay_access access)
{
	LLVMBuilderRef b = g->builder;
	LLVMTypeRef words[] = { g->i64, g->i64 },
		    string = LLVMStructTypeInContext(g->context, words, 2, 0);
	const char *of_string = g->p->checked.domain == DOMAIN_KERNEL
					? "fay_query_read_string"
					: "fay_query_read_program_string";
	const char *name = access.string       ? of_string
			   : access.bytes == 1 ? "fay_query_read1"
			   : access.bytes == 2 ? "fay_query_read2"
			   : access.bytes == 4 ? "fay_query_read4"
					       : "fay_query_read8";
	LLVMValueRef address = LLVMBuildAdd(b, fay_codegen_expr(g, expr->a).low,
					    fay_codegen_i64(g, access.offset), "");
	LLVMValueRef value =
		fay_codegen_call(g, name, access.string ? string : g->i64, &address, 1);
	g->reads = true;
	if (!access.string)
		return (struct fay_operand_value){ fay_codegen_extend(g, value, access), NULL };
	return (struct fay_operand_value){
		limited(g, LLVMBuildExtractValue(b, value, 0, ""), 0, access.limit),
		limited(g, LLVMBuildExtractValue(b, value, 1, ""), 8, access.limit)
	};
}

/* A saved trace has more than numbers. */
static struct fay_operand_value argument(struct fay_codegen *g, const struct fay_expr *expr,
					 struct fay_access access)
{
	LLVMValueRef word = fay_codegen_load(g, g->event, 8 * (uint64_t)access.offset);
	if (expr->type == TYPE_STRING)
		return (struct fay_operand_value){
			word, fay_codegen_load(g, g->event, 8 * (uint64_t)access.offset + 8)
		};
	if (expr->type == TYPE_BOOL)
		return (struct fay_operand_value){
			LLVMBuildICmp(g->builder, LLVMIntNE, word, fay_codegen_i64(g, 0), ""), NULL
		};
	return (struct fay_operand_value){ fay_codegen_extend(g, word, access), NULL };
}

static struct fay_operand_value leaf(struct fay_codegen *g, const struct fay_expr *expr)
{
	struct fay_access access = fay_access_unpack(expr->value);
	int text = fay_plan_text_number(g->p, expr);
	if (text >= 0)
		return fay_codegen_text_cell(g, (unsigned)text);
	if (g->bpf && access.words && expr->op == EXPR_ARG) /* traps do not compute */
		return (struct fay_operand_value){ fay_codegen_i64(g, 0), NULL };
	if (g->bpf)
		return expr->op == EXPR_MEMBER
			       ? fay_bpf_member(g, fay_codegen_expr(g, expr->a).low, access)
			       : fay_bpf_leaf(g, expr);
	if (expr->op == EXPR_MEMBER)
		return member(g, expr, access);
	if (expr->op == EXPR_ARG && access.words)
		return fay_codegen_computed(g, access);
	if (expr->op == EXPR_ARG)
		return argument(g, expr, access);
	return field(g, expr);
}

struct fay_operand_value fay_codegen_expr(struct fay_codegen *g, const struct fay_expr *expr)
{
	struct fay_operand_value *known = &g->values[expr->id];
	if (known->low)
		return *known;
	switch (expr->op) {
	case EXPR_CONSTANT: *known = constant(g, expr); break;
	case EXPR_ARG:
	case EXPR_FIELD:
	case EXPR_MEMBER: *known = leaf(g, expr); break;
	case EXPR_STACK:
		if (expr->a) {
			known->low = fay_codegen_at(
				g, g->event, fay_codegen_i64(g, 8 * (uint64_t)expr->a->value));
			break;
		}
		if (!g->frames && !g->bpf)
			g->frames = fay_codegen_frames(g);
		known->low = g->bpf ? fay_bpf_frames(g, expr) : g->frames;
		break;
	case EXPR_CALL: known->low = fay_codegen_function_call(g, expr); break;
	case EXPR_KEY: *known = fay_codegen_expr(g, expr->a); break;
	default: *known = operation(g, expr); break;
	}
	return *known;
}
