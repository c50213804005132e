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

LLVMValueRef fay_codegen_string(struct fay_codegen *g, const struct fay_expr *expr,
				struct fay_operand_value x)
{
	LLVMBuilderRef b = g->builder;
	/* negative: the string differs at all places */
	LLVMValueRef zero = fay_codegen_i64(g, 0), nowhere = NULL;
	if (expr->op == EXPR_LENGTH)
		return length_of(g, x);
	if (!expr->b->length)
		return LLVMConstInt(g->i1, 1, 0);
	if (expr->op == EXPR_STARTS_WITH)
		return LLVMBuildICmp(b, LLVMIntEQ, difference(g, x, expr->b, false), zero, "");
	for (unsigned from = 0; from + expr->b->length <= FAY_COMM_SIZE; from++) {
		LLVMValueRef differs =
			difference(g, tail_of(g, x, from), expr->b, expr->op == EXPR_ENDS_WITH);
		/* unless it is 0 */
		LLVMValueRef negative = LLVMBuildOr(b, differs, LLVMBuildNeg(b, differs, ""), "");
		nowhere = nowhere ? LLVMBuildAnd(b, nowhere, negative, "") : negative;
	}
	return nowhere ? LLVMBuildICmp(b, LLVMIntSGE, nowhere, zero, "")
		       : LLVMConstInt(g->i1, 0, 0);
}
