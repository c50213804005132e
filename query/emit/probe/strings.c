/* SPDX-License-Identifier: MIT */
/*
 * Methods of strings. A string is 16 bytes in two words, NUL padded; what is compared with it is a
 * constant. All is shifts and masks, without loops or branches: for each place at which the
 * constant could lie the string is shifted there, and what differs is gathered in two words. That
 * there is nothing is asked once, of all places together: in a BPF program each comparison is a
 * jump, and the kernel's verifier follows all ways through them.
 */
#include "probe_private.h"

/* The string from byte `from` on. */
static struct fay_operand_value tail_of(struct fay_codegen *g, struct fay_operand_value x,
					unsigned from)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef zero = fay_codegen_i64(g, 0), down = fay_codegen_i64(g, 8 * (from % 8));
	if (from == 0)
		return x;
	LLVMValueRef high = from % 8 ? LLVMBuildLShr(b, x.high, down, "") : x.high;
	if (from >= 8)
		return (struct fay_operand_value){ high, zero };
	LLVMValueRef across = LLVMBuildShl(b, x.high, fay_codegen_i64(g, 64 - 8 * from), "");
	return (struct fay_operand_value){
		LLVMBuildOr(b, LLVMBuildLShr(b, x.low, down, ""), across, ""), high
	};
}

/* 0 if the string begins with the constant, or, without masks, is it; else some bits. */
static LLVMValueRef difference(struct fay_codegen *g, struct fay_operand_value x,
			       const struct fay_expr *constant, bool whole)
{
	LLVMBuilderRef b = g->builder;
	uint64_t masks[2], words[2] = { fay_codegen_string_word(constant, 0, &masks[0]),
					fay_codegen_string_word(constant, 8, &masks[1]) };
	LLVMValueRef low = LLVMBuildXor(b, x.low, fay_codegen_i64(g, words[0]), ""),
		     high = LLVMBuildXor(b, x.high, fay_codegen_i64(g, words[1]), "");
	if (!whole) {
		low = LLVMBuildAnd(b, low, fay_codegen_i64(g, masks[0]), "");
		high = LLVMBuildAnd(b, high, fay_codegen_i64(g, masks[1]), "");
	}
	return LLVMBuildOr(b, low, high, "");
}

static LLVMValueRef length_of(struct fay_codegen *g, struct fay_operand_value x)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef zero = fay_codegen_i64(g, 0), one = fay_codegen_i64(g, 1),
		     none = LLVMConstInt(g->i1, 1, 0);
	LLVMValueRef is_long = LLVMBuildICmp(b, LLVMIntNE, x.high, zero, "");
	LLVMValueRef word = LLVMBuildSelect(b, is_long, x.high, x.low, "");
	LLVMValueRef arguments[] = { LLVMBuildOr(b, word, one, ""), none };
	LLVMValueRef top = LLVMBuildXor(b, fay_codegen_intrinsic(g, "llvm.ctlz", arguments, 2),
					fay_codegen_i64(g, 63), "");
	LLVMValueRef bytes =
		LLVMBuildAdd(b, LLVMBuildLShr(b, top, fay_codegen_i64(g, 3), ""), one, "");
	bytes = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, word, zero, ""), zero, bytes, "");
	return LLVMBuildAdd(b, bytes, LLVMBuildSelect(b, is_long, fay_codegen_i64(g, 8), zero, ""),
			    "length");
}

/* EndsWith, Contains: at each place at which the constant may lie. */
static LLVMValueRef is_in(struct fay_codegen *g, enum fay_expr_op op, struct fay_operand_value x,
			  const struct fay_expr *part)
{
	LLVMBuilderRef b = g->builder;
	/* negative: the string differs at all places */
	LLVMValueRef nowhere = NULL;
	for (unsigned from = 0; from + part->length <= FAY_COMM_SIZE; from++) {
		LLVMValueRef differs =
			difference(g, tail_of(g, x, from), part, op == EXPR_ENDS_WITH);
		/* unless it is 0 */
		LLVMValueRef negative = LLVMBuildOr(b, differs, LLVMBuildNeg(b, differs, ""), "");
		nowhere = nowhere ? LLVMBuildAnd(b, nowhere, negative, "") : negative;
	}
	return nowhere ? LLVMBuildICmp(b, LLVMIntSGE, nowhere, fay_codegen_i64(g, 0), "")
		       : LLVMConstInt(g->i1, 0, 0);
}

static LLVMValueRef is_equal(struct fay_codegen *g, struct fay_operand_value x,
			     struct fay_operand_value y)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef differs = LLVMBuildOr(b, LLVMBuildXor(b, x.low, y.low, ""),
					   LLVMBuildXor(b, x.high, y.high, ""), "");
	return LLVMBuildICmp(b, LLVMIntEQ, differs, fay_codegen_i64(g, 0), "");
}

static const struct fay_expr *without_key(const struct fay_expr *expr)
{
	while (expr->op == EXPR_KEY)
		expr = expr->a;
	return expr;
}

struct fay_operand_value fay_codegen_beginning(struct fay_codegen *g, const struct fay_expr *expr)
{
	expr = without_key(expr);
	int number = fay_plan_text_number(g->p, expr);
	if (number >= 0)
		return fay_codegen_text_beginning(g, (unsigned)number);
	if (expr->op != EXPR_COND || !fay_expr_is_long(expr))
		return fay_codegen_expr(g, expr);
	LLVMValueRef condition = fay_codegen_expr(g, expr->a).low;
	struct fay_operand_value x = fay_codegen_beginning(g, expr->b),
				 y = fay_codegen_beginning(g, expr->c);
	return (struct fay_operand_value){ LLVMBuildSelect(g->builder, condition, x.low, y.low, ""),
					   LLVMBuildSelect(g->builder, condition, x.high, y.high,
							   "") };
}

/* `constant` NULL: Length. Of `? :` with long strings each side is asked. */
static LLVMValueRef test(struct fay_codegen *g, enum fay_expr_op op, const struct fay_expr *string,
			 const struct fay_expr *constant)
{
	string = without_key(string);
	if (op != EXPR_LENGTH && op != EXPR_EQ && !constant->length)
		return LLVMConstInt(g->i1, 1, 0);
	int number = fay_plan_text_number(g->p, string);
	if (number >= 0)
		return fay_codegen_text_test(g, (unsigned)number, op, constant);
	if (string->op == EXPR_COND && fay_expr_is_long(string)) {
		LLVMValueRef condition = fay_codegen_expr(g, string->a).low;
		LLVMValueRef x = test(g, op, string->b, constant),
			     y = test(g, op, string->c, constant);
		return LLVMBuildSelect(g->builder, condition, x, y, "");
	}
	struct fay_operand_value x = fay_codegen_expr(g, string);
	LLVMValueRef zero = fay_codegen_i64(g, 0);
	switch (op) {
	case EXPR_LENGTH: return length_of(g, x);
	case EXPR_EQ: return is_equal(g, x, fay_codegen_expr(g, constant));
	case EXPR_STARTS_WITH:
		return LLVMBuildICmp(g->builder, LLVMIntEQ, difference(g, x, constant, false), zero,
				     "");
	default: return is_in(g, op, x, constant);
	}
}

LLVMValueRef fay_codegen_string(struct fay_codegen *g, const struct fay_expr *expr)
{
	if (expr->op != EXPR_EQ && expr->op != EXPR_NE)
		return test(g, expr->op, expr->a, expr->b);
	LLVMValueRef equal;
	if (fay_expr_is_constant(expr->b))
		equal = test(g, EXPR_EQ, expr->a, expr->b);
	else if (fay_expr_is_constant(expr->a))
		equal = test(g, EXPR_EQ, expr->b, expr->a);
	else
		equal = is_equal(g, fay_codegen_expr(g, expr->a), fay_codegen_expr(g, expr->b));
	return expr->op == EXPR_EQ ? equal : LLVMBuildNot(g->builder, equal, "");
}
