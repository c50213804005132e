/* SPDX-License-Identifier: MIT */
/*
 * Guards widened over a loop's counter. In
 *
 *     for (i = 0; i < n; i++) a[i] ...
 *
 * with an n from anywhere, each a[i] would need a guard, and the loop fuel. If every round accesses
 * a[i] and the test of i is the only way out, a program that is right has no more rounds than a has
 * elements: so n is clamped to that once, before the loop, and both are gone.
 */
#include "guards_private.h"

static bool in_loop(const struct fay_flow *flow, const struct fay_counter *c,
		    LLVMBasicBlockRef header, LLVMBasicBlockRef block)
{
	return fay_flow_dominates(flow, header, block) &&
	       (block == header || block == c->latch || fay_reaches(block, c->latch, header));
}

/* Whether the loop is left from its latch only. */
static bool leaves_at_latch(const struct fay_flow *flow, const struct fay_counter *c,
			    LLVMBasicBlockRef header)
{
	for (unsigned i = 0; i < flow->count; i++) {
		LLVMBasicBlockRef block = flow->blocks[i];
		LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);

		if (block == c->latch || !in_loop(flow, c, header, block))
			continue;
		for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++)
			if (!in_loop(flow, c, header, LLVMGetSuccessor(terminator, s)))
				return false;
	}
	return true;
}

static bool is_counter(LLVMValueRef index, LLVMValueRef phi)
{
	while (LLVMIsAZExtInst(index) || LLVMIsASExtInst(index))
		index = LLVMGetOperand(index, 0);
	return index == phi;
}

/* The largest counter with which this load or store stays inside; UINT64_MAX if the counter is not
 * its index. */
static uint64_t most_for(struct fay_unit *unit, LLVMValueRef i, LLVMValueRef phi)
{
	LLVMValueRef pointer, type = NULL;
	struct fay_address a;
	struct fay_extent e;
	uint64_t size, most, further;

	if (LLVMIsALoadInst(i)) {
		pointer = LLVMGetOperand(i, 0);
		type = i;
	} else if (LLVMIsAStoreInst(i)) {
		pointer = LLVMGetOperand(i, 1);
		type = LLVMGetOperand(i, 0);
	} else {
		return UINT64_MAX;
	}
	size = LLVMStoreSizeOfType(unit->layout, LLVMTypeOf(type));
	if (!fay_trace(unit, pointer, &a) || !fay_extent_of(unit, a.base, &e) || a.terms != 1 ||
	    a.constant < 0 || a.term[0].scale <= 0 || size > e.size ||
	    (uint64_t)a.constant > e.size - size || !is_counter(a.term[0].index, phi))
		return UINT64_MAX;
	most = (e.size - size - (uint64_t)a.constant) / (uint64_t)a.term[0].scale;
	further = (a.term[0].beyond + size - 1) / (uint64_t)a.term[0].scale;
	return a.term[0].limit > further && a.term[0].limit - further - 1 < most
		       ? a.term[0].limit - further - 1
		       : most;
}

/* Over the accesses that every round makes. */
static uint64_t most_of(struct fay_unit *unit, const struct fay_flow *flow,
			const struct fay_counter *c, LLVMBasicBlockRef header, LLVMValueRef phi)
{
	uint64_t most = UINT64_MAX;

	for (unsigned k = 0; k < flow->count; k++) {
		if (!in_loop(flow, c, header, flow->blocks[k]) ||
		    !fay_flow_dominates(flow, flow->blocks[k], c->latch))
			continue;
		for (LLVMValueRef i = LLVMGetFirstInstruction(flow->blocks[k]); i;
		     i = LLVMGetNextInstruction(i)) {
			uint64_t here = most_for(unit, i, phi);

			most = here < most ? here : most;
		}
	}
	return most;
}

static void shorten(struct fay_unit *unit, LLVMBuilderRef b, const struct fay_flow *flow,
		    LLVMValueRef phi)
{
	LLVMBasicBlockRef header = LLVMGetInstructionParent(phi), home;
	struct fay_compare compare;
	struct fay_counter c;
	LLVMValueRef condition, bound, least;
	uint64_t most;

	if (!fay_counter_of(phi, &c) || c.step <= 0 || !LLVMIsAConstantInt(c.start) ||
	    !fay_counter_test(phi, &c, c.latch, &compare) || compare.predicate != LLVMIntULT ||
	    LLVMIsAConstantInt(compare.right))
		return;
	home = LLVMIsAInstruction(compare.right) ? LLVMGetInstructionParent(compare.right)
						 : flow->blocks[0];
	if (!fay_flow_dominates(flow, home, c.entry) || !leaves_at_latch(flow, &c, header))
		return;
	most = most_of(unit, flow, &c, header, phi);
	if (most > UINT32_MAX || LLVMConstIntGetZExtValue(c.start) > most ||
	    most >= UINT64_MAX >> (65 - LLVMGetIntTypeWidth(LLVMTypeOf(phi))))
		return;
	if (fay_range_of(compare.right, LLVMGetBasicBlockTerminator(c.entry)).hi <= most + 1)
		return;
	bound = LLVMConstInt(LLVMTypeOf(phi), compare.left == phi ? most : most + 1, 0);
	LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(c.entry));
	least = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, compare.right, bound, ""),
				compare.right, bound, "guard");
	condition = LLVMGetCondition(LLVMGetBasicBlockTerminator(c.latch));
	LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(c.latch));
	least = LLVMBuildICmp(b, LLVMIntULT, compare.left, least, "");
	if (LLVMGetSuccessor(LLVMGetBasicBlockTerminator(c.latch), 0) != header)
		least = LLVMBuildNot(b, least, "");
	LLVMSetCondition(LLVMGetBasicBlockTerminator(c.latch), least);
	if (!LLVMGetFirstUse(condition))
		LLVMInstructionEraseFromParent(condition);
	unit->count.shortened++;
}

void fay_shorten_loops(struct fay_unit *unit, LLVMBuilderRef b, const struct fay_flow *flow)
{
	for (unsigned k = 0; k < flow->count; k++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(flow->blocks[k]);
		     i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i))
			shorten(unit, b, flow, i);
}
