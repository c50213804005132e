/* SPDX-License-Identifier: MIT */
/*
 * fay_top_add() of fay/sketch.h in BPF programs: Misra and Gries' counters, found by a loop over
 * all that are held.
 *
 * The kernel's verifier goes through each round of a loop, and through each of the paths of a
 * round. So there is one: what a round decides is computed as a bit and multiplied with, hidden
 * from the optimiser, which would make branches of it. The rounds are counted by a hidden number:
 * the verifier knows it in each round, and the optimiser cannot replace it by an address, whose end
 * the verifier would not know.
 */
#include "bpf_machine_private.h"

#include "fay/sketch.h"

#define SHIFT 4u /* an entry has 16 bytes */

static LLVMValueRef i64(const struct fay_codegen *g, uint64_t value)
{
	return fay_codegen_i64(g, value);
}

/* 1 if x is not 0. */
static LLVMValueRef is_set(struct fay_codegen *g, LLVMValueRef x)
{
	LLVMValueRef negative = fay_bpf_hide(g, LLVMBuildNeg(g->builder, x, ""));
	LLVMValueRef sign = LLVMBuildOr(g->builder, x, negative, "");
	return fay_bpf_hide(g, LLVMBuildLShr(g->builder, sign, i64(g, 63), ""));
}

static LLVMValueRef invert(struct fay_codegen *g, LLVMValueRef bit)
{
	return LLVMBuildXor(g->builder, bit, i64(g, 1), "");
}

/* bit ? x : y. By a product: of an AND with a mask that is all or nothing the verifier of 6.18
 * follows both outcomes. */
static LLVMValueRef pick(struct fay_codegen *g, LLVMValueRef bit, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = g->builder;
	return LLVMBuildXor(b, y, LLVMBuildMul(b, LLVMBuildXor(b, x, y, ""), bit, ""), "");
}

/* --- the loop: numbers carried from round to round, the first of which counts them --- */

#define CARRIED_MAX 3u

struct rounds {
	LLVMBasicBlockRef head, after;
	LLVMValueRef carried[CARRIED_MAX];
	unsigned count;
	uint64_t end;
};

static void begin_rounds(struct fay_codegen *g, struct rounds *r, const uint64_t *first,
			 unsigned count, uint64_t end)
{
	LLVMBasicBlockRef before = LLVMGetInsertBlock(g->builder);
	r->head = fay_codegen_block(g, "round");
	r->after = fay_codegen_block(g, "after_rounds");
	r->count = count;
	r->end = end;
	LLVMBuildBr(g->builder, r->head);
	fay_codegen_continue(g, r->head);
	for (unsigned i = 0; i < count; i++) {
		LLVMValueRef value = i64(g, first[i]);
		r->carried[i] = LLVMBuildPhi(g->builder, g->i64, "");
		LLVMAddIncoming(r->carried[i], &value, &before, 1);
	}
}

/* next[i]: what carried[i] is in the next round, but for the first, which is one more. */
static void end_rounds(struct fay_codegen *g, struct rounds *r, LLVMValueRef *next)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(g->builder);
	next[0] = fay_bpf_hide(g, LLVMBuildAdd(g->builder, r->carried[0], i64(g, 1), ""));
	LLVMBuildCondBr(g->builder,
			LLVMBuildICmp(g->builder, LLVMIntULT, next[0], i64(g, r->end), ""), r->head,
			r->after);
	for (unsigned i = 0; i < r->count; i++)
		LLVMAddIncoming(r->carried[i], &next[i], &here, 1);
	fay_codegen_continue(g, r->after);
}

/* --- the counters --- */

static LLVMValueRef entry_at(struct fay_codegen *g, LLVMValueRef entries, LLVMValueRef index)
{
	return fay_codegen_at(g, entries, LLVMBuildShl(g->builder, index, i64(g, SHIFT), ""));
}

/* Where x is counted or, if it is not, the last free place; k: neither. */
static LLVMValueRef find_place(struct fay_codegen *g, LLVMValueRef entries, LLVMValueRef x,
			       uint64_t k)
{
	struct rounds r;
	begin_rounds(g, &r, (const uint64_t[]){ 0, k, k }, 3, k);
	LLVMValueRef entry = entry_at(g, entries, r.carried[0]);
	LLVMValueRef used = is_set(g, fay_bpf_load(g, entry, offsetof(struct fay_pair, count), 8));
	LLVMValueRef key = fay_bpf_load(g, entry, offsetof(struct fay_pair, key), 8);
	LLVMValueRef same = LLVMBuildAnd(
		g->builder, used, invert(g, is_set(g, LLVMBuildXor(g->builder, key, x, ""))), "");
	LLVMValueRef next[] = { NULL, pick(g, same, r.carried[0], r.carried[1]),
				pick(g, used, r.carried[2], r.carried[0]) };
	end_rounds(g, &r, next);
	return pick(g, is_set(g, LLVMBuildXor(g->builder, next[1], i64(g, k), "")), next[1],
		    next[2]);
}

static void lower_all(struct fay_codegen *g, LLVMValueRef entries, uint64_t k)
{
	struct rounds r;
	LLVMValueRef next[1];
	begin_rounds(g, &r, (const uint64_t[]){ 0 }, 1, k);
	LLVMValueRef entry = entry_at(g, entries, r.carried[0]);
	LLVMValueRef count = fay_bpf_load(g, entry, offsetof(struct fay_pair, count), 8);
	fay_codegen_store(g, entry, offsetof(struct fay_pair, count),
			  LLVMBuildSub(g->builder, count, i64(g, 1), ""));
	end_rounds(g, &r, next);
}

static void add_one(struct fay_codegen *g, LLVMValueRef base, uint64_t offset)
{
	fay_codegen_store(
		g, base, offset,
		LLVMBuildAdd(g->builder, fay_codegen_load(g, base, offset), i64(g, 1), ""));
}

void fay_bpf_top(struct fay_codegen *g, uint64_t k, LLVMValueRef column, LLVMValueRef x)
{
	LLVMBasicBlockRef there = fay_codegen_block(g, "place"),
			  none = fay_codegen_block(g, "no_place"),
			  counted = fay_codegen_block(g, "counted");
	LLVMValueRef entries = fay_codegen_at(g, column, i64(g, sizeof(struct fay_top)));
	add_one(g, column, offsetof(struct fay_top, total));
	LLVMValueRef place = find_place(g, entries, x, k);
	LLVMBuildCondBr(g->builder, LLVMBuildICmp(g->builder, LLVMIntULT, place, i64(g, k), ""),
			there, none);
	fay_codegen_continue(g, there);
	/* A free place counts 0. */
	LLVMValueRef entry = entry_at(g, entries, fay_bpf_limit(g, place, k - 1));
	fay_codegen_store(g, entry, offsetof(struct fay_pair, key), x);
	add_one(g, entry, offsetof(struct fay_pair, count));
	LLVMBuildBr(g->builder, counted);
	fay_codegen_continue(g, none);
	add_one(g, column, offsetof(struct fay_top, error));
	lower_all(g, entries, k);
	LLVMBuildBr(g->builder, counted);
	fay_codegen_continue(g, counted);
}
