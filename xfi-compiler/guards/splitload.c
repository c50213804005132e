/* SPDX-License-Identifier: MIT */
/*
 * Loads through a pointer into one of several objects: simplification turns "this of a, or that of
 * b" into one load through a pointer to a or b. No guard fits that, so such a load is taken apart
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "guards_private.h"

static bool writes(LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMStore:
	case LLVMCall:
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
	case LLVMFence: return true;
	default: return false;
	}
}

/* The pointer `v` with `merge`, on which it is based, replaced by one of its choices; before the
 * builder's place. */
static LLVMValueRef with_choice(LLVMBuilderRef b, LLVMValueRef v, LLVMValueRef merge,
				LLVMValueRef choice, int depth)
{
	LLVMValueRef indices[8], base;
	int count = LLVMGetNumOperands(v) - 1;

	if (v == merge)
		return choice;
	if (!LLVMIsAGetElementPtrInst(v) || count > 8 || depth > 8)
		return NULL;
	base = with_choice(b, LLVMGetOperand(v, 0), merge, choice, depth + 1);
	for (int i = 0; i < count; i++) {
		indices[i] = LLVMGetOperand(v, i + 1);
		if (LLVMIsAPHINode(merge) && !LLVMIsAConstant(indices[i]) &&
		    (!LLVMIsAInstruction(indices[i]) ||
		     LLVMGetInstructionParent(indices[i]) == LLVMGetInstructionParent(merge)))
			return NULL;
	}
	return base ? LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(v), base, indices,
				    (unsigned)count, "")
		    : NULL;
}

/*
 * Simplification turns "this of a, or that of b" into one load through a pointer to a or b. Such a
 * load is taken apart again: both loads and a choice (every object can always be read), or one load
 * on each way in. Returns whether it did.
 */
static bool split_load(LLVMBuilderRef b, LLVMValueRef load)
{
	LLVMValueRef pointer = LLVMGetOperand(load, 0), merge = pointer, made, values[16];
	LLVMBasicBlockRef from[16];
	unsigned n;

	while (LLVMIsAGetElementPtrInst(merge))
		merge = LLVMGetOperand(merge, 0);
	if (!fay_is_merge(merge) || LLVMGetVolatile(load))
		return false;
	if (LLVMIsAPHINode(merge)) {
		if (LLVMGetInstructionParent(merge) != LLVMGetInstructionParent(load) ||
		    LLVMCountIncoming(merge) > 16)
			return false;
		for (LLVMValueRef i = merge; i != load; i = LLVMGetNextInstruction(i))
			if (writes(i))
				return false;
	}
	n = LLVMIsAPHINode(merge) ? LLVMCountIncoming(merge) : 2;
	for (unsigned i = 0; i < n; i++) {
		LLVMValueRef choice = LLVMIsAPHINode(merge) ? LLVMGetIncomingValue(merge, i)
							    : LLVMGetOperand(merge, i + 1),
			     p;

		from[i] = LLVMIsAPHINode(merge) ? LLVMGetIncomingBlock(merge, i) : NULL;
		LLVMPositionBuilderBefore(b, from[i] ? LLVMGetBasicBlockTerminator(from[i]) : load);
		p = with_choice(b, pointer, merge, choice, 0);
		if (!p)
			return false; /* what was built so far is dead and harmless */
		values[i] = LLVMBuildLoad2(b, LLVMTypeOf(load), p, "");
		LLVMSetAlignment(values[i], LLVMGetAlignment(load));
	}
	if (LLVMIsAPHINode(merge)) {
		LLVMPositionBuilderBefore(b, merge);
		made = LLVMBuildPhi(b, LLVMTypeOf(load), "");
		LLVMAddIncoming(made, values, from, n);
	} else {
		LLVMPositionBuilderBefore(b, load);
		made = LLVMBuildSelect(b, LLVMGetOperand(merge, 0), values[0], values[1], "");
	}
	LLVMReplaceAllUsesWith(load, made);
	LLVMInstructionEraseFromParent(load);
	return true;
}

void fay_split_loads_in(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	struct fay_roots *r = malloc(sizeof(*r));
	int left = 256; /* a load can be taken apart more than once */

	if (!r)
		abort();
again:
	for (LLVMValueRef i = fay_first_of_function(function); i; i = fay_next_of_function(i)) {
		if (!LLVMIsALoadInst(i))
			continue;
		memset(r, 0, sizeof(*r));
		fay_find_roots(unit, function, LLVMGetOperand(i, 0), r);
		if (r->unknown && left-- > 0 && split_load(b, i))
			goto again;
	}
	free(r);
}

void fay_split_loads(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			fay_split_loads_in(unit, b, f);
	LLVMDisposeBuilder(b);
}
