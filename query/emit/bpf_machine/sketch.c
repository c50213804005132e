/* SPDX-License-Identifier: MIT */
/*
 * The summaries of fay/sketch.h in BPF programs, where calling the functions of sketches.c would
 * need bounds that the kernel's verifier does not see. tests/integration/queries/bpf.sh and
 * tests/query/test_random.c compare the results with what they should be.
 */
#include "bpf_machine_private.h"

#include "fay/sketch.h"

static LLVMValueRef i64(const struct fay_codegen *g, uint64_t value)
{
	return fay_codegen_i64(g, value);
}

static void store_narrow(struct fay_codegen *g, LLVMValueRef address, LLVMValueRef value,
			 unsigned bytes)
{
	LLVMTypeRef type = LLVMIntTypeInContext(g->context, bytes * 8);
	LLVMValueRef store =
		LLVMBuildStore(g->builder, LLVMBuildTrunc(g->builder, value, type, ""), address);
	LLVMSetAlignment(store, bytes);
}

/* fay_quantiles() */
static void quantiles(struct fay_codegen *g, LLVMValueRef column, LLVMValueRef x)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef bucket =
		fay_bpf_limit(g, fay_codegen_quantile_bucket(g, x), FAY_QUANTILE_BUCKETS - 1);
	LLVMValueRef at = fay_codegen_at(g, column, LLVMBuildShl(b, bucket, i64(g, 2), ""));
	LLVMValueRef count = fay_bpf_load(g, at, 0, 4);
	LLVMValueRef more = LLVMBuildZExt(
		b, LLVMBuildICmp(b, LLVMIntNE, count, i64(g, UINT32_MAX), ""), g->i64, "");
	store_narrow(g, at, LLVMBuildAdd(b, count, more, ""), 4);
}

/* fay_mix() */
static LLVMValueRef mix(struct fay_codegen *g, LLVMValueRef x)
{
	static const struct {
		unsigned shift;
		uint64_t factor;
	} steps[] = { { 30, 0xbf58476d1ce4e5b9u }, { 27, 0x94d049bb133111ebu }, { 31, 1 } };
	for (unsigned i = 0; i < 3; i++) {
		x = LLVMBuildXor(g->builder, x,
				 LLVMBuildLShr(g->builder, x, i64(g, steps[i].shift), ""), "");
		x = LLVMBuildMul(g->builder, x, i64(g, steps[i].factor), "");
	}
	return x;
}

/* fay_distinct() */
static void distinct(struct fay_codegen *g, LLVMValueRef column, LLVMValueRef x)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef hash = mix(g, LLVMBuildAdd(b, x, i64(g, 0x9e3779b97f4a7c15u), ""));
	LLVMValueRef rest = LLVMBuildOr(b, LLVMBuildLShr(b, hash, i64(g, 11), ""),
					i64(g, (uint64_t)1 << 53), "");
	LLVMValueRef lowest = LLVMBuildAnd(b, rest, LLVMBuildNeg(b, rest, ""), "");
	LLVMValueRef rank = LLVMBuildAdd(b, fay_codegen_log2(g, lowest), i64(g, 1), "");
	LLVMValueRef index = fay_bpf_limit(g, LLVMBuildAnd(b, hash, i64(g, 2047), ""), 2047);
	LLVMValueRef at = fay_codegen_at(g, column, index), held = fay_bpf_load(g, at, 0, 1);
	LLVMValueRef more = LLVMBuildICmp(b, LLVMIntULT, held, rank, "");
	store_narrow(g, at, LLVMBuildSelect(b, more, rank, held, ""), 1);
}

/* fay_first() with the time's complement, fay_last() with the time. */
static void at_time(struct fay_codegen *g, LLVMValueRef column, LLVMValueRef x, LLVMValueRef time)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef held_time = fay_codegen_load(g, column, 0),
		     held = fay_codegen_load(g, column, 8);
	LLVMValueRef same = LLVMBuildICmp(b, LLVMIntEQ, time, held_time, "");
	LLVMValueRef larger = LLVMBuildICmp(b, LLVMIntUGT, x, held, "");
	LLVMValueRef wins = LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntUGT, time, held_time, ""),
					LLVMBuildAnd(b, same, larger, ""), "");
	fay_codegen_store(g, column, 0, LLVMBuildSelect(b, wins, time, held_time, ""));
	fay_codegen_store(g, column, 8, LLVMBuildSelect(b, wins, x, held, ""));
}

void fay_bpf_sketch(struct fay_codegen *g, const struct fay_aggregate *aggregate,
		    LLVMValueRef column, LLVMValueRef x)
{
	switch (aggregate->merge) {
	case FAY_MERGE_QUANTILE: quantiles(g, column, x); break;
	case FAY_MERGE_DISTINCT: distinct(g, column, x); break;
	case FAY_MERGE_TOP: fay_bpf_top(g, aggregate->k, column, x); break;
	case FAY_MERGE_FIRST:
		at_time(g, column, x, LLVMBuildNot(g->builder, fay_bpf_time(g), ""));
		break;
	default: /* LAST */ at_time(g, column, x, fay_bpf_time(g)); break;
	}
}
