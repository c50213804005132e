/* SPDX-License-Identifier: MIT */
/* The buckets of summaries, for x86-64 and for BPF. No branches, and nothing that traps. */
#include "ir.h"

static LLVMValueRef i64(const struct fay_codegen *g, uint64_t value)
{
	return fay_codegen_i64(g, value);
}

/* By bsr: ctlz(...) ^ 63 is at most 63. */
static LLVMValueRef highest_bit(struct fay_codegen *g, LLVMValueRef x)
{
	LLVMValueRef arguments[] = { x, LLVMConstInt(g->i1, 1, 0) };
	LLVMValueRef zeros = fay_codegen_intrinsic(g, "llvm.ctlz", arguments, 2);
	return LLVMBuildXor(g->builder, zeros, i64(g, 63), "bit");
}

LLVMValueRef fay_codegen_log2(struct fay_codegen *g, LLVMValueRef x)
{
	return highest_bit(g, LLVMBuildOr(g->builder, x, i64(g, 1), ""));
}

static LLVMValueRef not_negative(struct fay_codegen *g, LLVMValueRef x)
{
	LLVMValueRef zero = i64(g, 0),
		     positive = LLVMBuildICmp(g->builder, LLVMIntSGT, x, zero, "");
	return LLVMBuildSelect(g->builder, positive, x, zero, "");
}

/* 0 for x <= 0, else 1 + floor(log2 x): the highest bit of 2x + 1. */
LLVMValueRef fay_codegen_log2_bucket(struct fay_codegen *g, LLVMValueRef x)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef one = i64(g, 1);
	return highest_bit(g,
			   LLVMBuildOr(b, LLVMBuildShl(b, not_negative(g, x), one, ""), one, ""));
}

/* fay_loglinear_bucket(x, FAY_QUANTILE_BITS) of fay/sketch.h */
LLVMValueRef fay_codegen_quantile_bucket(struct fay_codegen *g, LLVMValueRef x)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef bits = i64(g, FAY_QUANTILE_BITS), value = not_negative(g, x);
	LLVMValueRef exponent = fay_codegen_log2(g, value);
	LLVMValueRef small = LLVMBuildICmp(b, LLVMIntULT, exponent, bits, "");
	LLVMValueRef above = LLVMBuildAnd(b, LLVMBuildSub(b, exponent, bits, ""), i64(g, 63), "");
	LLVMValueRef first = LLVMBuildShl(b, LLVMBuildAdd(b, above, i64(g, 1), ""), bits, "");
	LLVMValueRef within = LLVMBuildAnd(b, LLVMBuildLShr(b, value, above, ""),
					   i64(g, (1u << FAY_QUANTILE_BITS) - 1), "");
	return LLVMBuildSelect(b, small, value, LLVMBuildAdd(b, first, within, ""), "bucket");
}
