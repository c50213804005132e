/* SPDX-License-Identifier: MIT */
/*
 * Loops that fill bytes:
 *
 *     for (i = 0; i < 256; i++) a[i] = x;
 *
 * Compilers call memset() for them, which a probe has not. With a constant number of rounds such a
 * store becomes one fill by words (memory.c), in front of the loop; a loop in which nothing is left
 * then goes away.
 */
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "lower.h"

#define FILL_MIN 16

/* Whether the value is the same in every round of the loop that consists of `block`. */
static bool is_invariant(LLVMValueRef v, LLVMBasicBlockRef block)
{
	return !LLVMIsAInstruction(v) || LLVMGetInstructionParent(v) != block;
}

/* The store's address without the counter, built in front of the loop: a chain of GEPs whose last
 * index is the counter, as it is. NULL: another shape. */
static LLVMValueRef place_of(LLVMBuilderRef b, LLVMValueRef pointer, LLVMValueRef phi,
			     LLVMBasicBlockRef block)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(pointer);
	int count = LLVMGetNumOperands(pointer);
	LLVMValueRef indices[8], index = LLVMGetOperand(pointer, (unsigned)count - 1);

	while (LLVMIsAZExtInst(index))
		index = LLVMGetOperand(index, 0);
	if (index != phi || count > 8 || !is_invariant(LLVMGetOperand(pointer, 0), block))
		return NULL;
	for (int i = 1; i < count; i++) {
		indices[i - 1] =
			i == count - 1
				? LLVMConstNull(LLVMTypeOf(LLVMGetOperand(pointer, (unsigned)i)))
				: LLVMGetOperand(pointer, (unsigned)i);
		if (!is_invariant(indices[i - 1], block))
			return NULL;
	}
	return LLVMBuildGEP2(b, type, LLVMGetOperand(pointer, 0), indices, (unsigned)count - 1, "");
}

/* Whether nothing else in the block reads or writes memory: then the order of this store and the
 * rounds does not matter. */
static bool is_alone(LLVMValueRef store)
{
	for (LLVMValueRef i = LLVMGetFirstInstruction(LLVMGetInstructionParent(store)); i;
	     i = LLVMGetNextInstruction(i)) {
		LLVMOpcode opcode = LLVMGetInstructionOpcode(i);

		if (opcode == LLVMCall && LLVMIsAFunction(LLVMGetCalledValue(i)) &&
		    !strncmp(fay_callee(i), "llvm.dbg.", 9))
			continue;
		if (i != store &&
		    (opcode == LLVMLoad || opcode == LLVMStore || opcode == LLVMCall ||
		     opcode == LLVMAtomicRMW || opcode == LLVMAtomicCmpXchg || opcode == LLVMFence))
			return false;
	}
	return true;
}

static void fill(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef phi)
{
	LLVMBasicBlockRef block = LLVMGetInstructionParent(phi), latch;
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context);
	LLVMValueRef next, store = NULL, value, to;
	uint64_t start, step, rounds = 0;
	struct fay_counter c;
	bool cut;

	if (!fay_induction(phi, &start, &step, &next, &latch) || latch != block || start ||
	    step != 1 || !fay_counter_of(phi, &c) ||
	    LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(c.entry)) != 1)
		return;
	for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
		if (LLVMIsAStoreInst(i))
			store = i;
	if (!store || LLVMGetVolatile(store) ||
	    LLVMGetOrdering(store) != LLVMAtomicOrderingNotAtomic || !is_alone(store))
		return;
	value = LLVMGetOperand(store, 0);
	/* the byte itself is made in the loop */
	cut = LLVMIsATruncInst(value) && !is_invariant(value, block);
	if (LLVMTypeOf(value) != LLVMInt8TypeInContext(unit->context) ||
	    !is_invariant(cut ? LLVMGetOperand(value, 0) : value, block) ||
	    !LLVMIsAGetElementPtrInst(LLVMGetOperand(store, 1)))
		return;
	rounds = fay_exact_rounds(phi, &c);
	if (rounds < FILL_MIN || rounds > FAY_FILL_MAX)
		return;
	LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(c.entry));
	to = place_of(b, LLVMGetOperand(store, 1), phi, block);
	if (!to)
		return;
	LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(store));
	if (cut)
		value = LLVMBuildTrunc(b, LLVMGetOperand(value, 0), LLVMTypeOf(value), "");
	LLVMBuildMemSet(b, to, value, LLVMConstInt(i64, rounds, 0), 1);
	LLVMSetCurrentDebugLocation2(b, NULL);
	LLVMInstructionEraseFromParent(store);
}

void fay_fill(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k;
		     k = LLVMGetNextBasicBlock(k))
			for (LLVMValueRef i = LLVMGetFirstInstruction(k), next;
			     i && LLVMIsAPHINode(i); i = next) {
				next = LLVMGetNextInstruction(i);
				fill(unit, b, i);
			}
	LLVMDisposeBuilder(b);
}
