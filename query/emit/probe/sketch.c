/* SPDX-License-Identifier: MIT */
/* Aggregates that are summaries: calls of the functions in query/runtime/sketches.c. */
#include "probe_private.h"

static const char *function_name(enum fay_merge merge)
{
	switch (merge) {
	case FAY_MERGE_QUANTILE: return "fay_query_quantile";
	case FAY_MERGE_DISTINCT: return "fay_query_distinct";
	case FAY_MERGE_TOP: return "fay_query_top";
	case FAY_MERGE_FIRST: return "fay_query_first";
	case FAY_MERGE_LAST: return "fay_query_last";
	default: return NULL;
	}
}

bool fay_codegen_is_sketch(enum fay_merge merge)
{
	return function_name(merge) != NULL;
}

/* One word that stands for the operand. Of a string's two: equal strings give equal words, others
 * differ but for one chance in 2^64. */
static LLVMValueRef word_of(struct fay_codegen *g, const struct fay_expr *operand)
{
	struct fay_operand_value x = fay_codegen_expr(g, operand);
	if (operand->type == TYPE_STACK)
		return fay_codegen_frames_word(g, x.low, (uint32_t)operand->value);
	if (LLVMTypeOf(x.low) == g->i1)
		return LLVMBuildZExt(g->builder, x.low, g->i64, "");
	if (!x.high)
		return x.low;
	LLVMValueRef mixed =
		LLVMBuildMul(g->builder, x.high, fay_codegen_i64(g, 0x9e3779b97f4a7c15u), "");
	return LLVMBuildXor(g->builder, x.low, mixed, "");
}

static void call(struct fay_codegen *g, const struct fay_aggregate *aggregate, LLVMValueRef column,
		 LLVMValueRef x)
{
	if (g->bpf) {
		fay_bpf_sketch(g, aggregate, column, x);
		return;
	}
	bool at_time = aggregate->merge == FAY_MERGE_FIRST || aggregate->merge == FAY_MERGE_LAST;
	LLVMValueRef arguments[] = { column, x, NULL };
	unsigned count = 2;
	if (at_time)
		arguments[count++] =
			fay_codegen_load(g, g->event, offsetof(struct fay_event, time));
	else if (aggregate->merge == FAY_MERGE_TOP)
		arguments[count++] = fay_codegen_i64(g, aggregate->k);
	fay_codegen_call(g, function_name(aggregate->merge), LLVMVoidTypeInContext(g->context),
			 arguments, count);
	g->sketches = true;
}

void fay_codegen_sketch(struct fay_codegen *g, const struct fay_aggregate *aggregate,
			LLVMValueRef row, uint32_t offset)
{
	LLVMValueRef x = word_of(g, aggregate->operand);
	LLVMValueRef column = fay_codegen_at(g, row, fay_codegen_i64(g, offset));
	if (!aggregate->condition) {
		call(g, aggregate, column, x);
		return;
	}
	LLVMBasicBlockRef takes_part =
		LLVMAppendBasicBlockInContext(g->context, g->function, "takes_part");
	LLVMBasicBlockRef next =
		LLVMAppendBasicBlockInContext(g->context, g->function, "next_value");
	LLVMBuildCondBr(g->builder, fay_codegen_expr(g, aggregate->condition).low, takes_part,
			next);
	LLVMPositionBuilderAtEnd(g->builder, takes_part);
	call(g, aggregate, column, x);
	LLVMBuildBr(g->builder, next);
	LLVMPositionBuilderAtEnd(g->builder, next);
}
