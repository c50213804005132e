/* SPDX-License-Identifier: MIT */
/*
 * Before the guards: signed comparisons and extensions of what is never negative become unsigned
 * ones, of which intervals say more; and an index is widened before constants are added to it.
 */
#include "guards_private.h"

static bool never_negative(LLVMValueRef v, LLVMValueRef at)
{
	unsigned width = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMIntegerTypeKind
				 ? LLVMGetIntTypeWidth(LLVMTypeOf(v))
				 : 65;

	return width > 1 && width <= 64 && fay_range_of(v, at).hi < UINT64_C(1) << (width - 1);
}

/* Signed comparisons and extensions of what is never negative, as unsigned ones: intervals say more
 * about those. */
static void make_unsigned(LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMValueRef left = LLVMGetOperand(i, 0), made;
	LLVMIntPredicate predicate;

	if (!never_negative(left, i))
		return;
	LLVMPositionBuilderBefore(b, i);
	if (LLVMGetInstructionOpcode(i) == LLVMSExt) {
		made = LLVMBuildZExt(b, left, LLVMTypeOf(i), "");
	} else {
		predicate = LLVMGetICmpPredicate(i);
		if (predicate < LLVMIntSGT || !never_negative(LLVMGetOperand(i, 1), i))
			return;
		made = LLVMBuildICmp(b, predicate - LLVMIntSGT + LLVMIntUGT, left,
				     LLVMGetOperand(i, 1), "");
	}
	LLVMReplaceAllUsesWith(i, made);
	LLVMInstructionEraseFromParent(i);
}

/* Whether i, x and a constant in 32 bits, is the same number if computed in 64. */
static bool never_wraps(LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	uint64_t most, c, result;

	if ((opcode != LLVMAdd && opcode != LLVMMul && opcode != LLVMShl && opcode != LLVMOr) ||
	    !LLVMIsAConstantInt(LLVMGetOperand(i, 1)) || LLVMGetIntTypeWidth(LLVMTypeOf(i)) != 32)
		return false;
	c = LLVMConstIntGetZExtValue(LLVMGetOperand(i, 1));
	if (opcode == LLVMOr) /* an addition, if it meets zeros only */
		return c >> fay_zero_bits(LLVMGetOperand(i, 0)) == 0;
	/* what speculation makes of it is guarded afterwards */
	most = fay_range_of(LLVMGetOperand(i, 0), i).hi;
	if (opcode == LLVMShl)
		c = UINT64_C(1) << (c & 31);
	return !(opcode == LLVMAdd ? __builtin_add_overflow(most, c, &result)
				   : __builtin_mul_overflow(most, c, &result)) &&
	       result <= UINT32_MAX;
}

/*
 * An index of 32 bits that becomes one of 64: what is done to it with constants is done after that,
 * where it is seen not to wrap. A constant then is part of the address, and neighbours are seen as
 * such.
 */
static void widen_first(LLVMBuilderRef b, LLVMValueRef extension)
{
	LLVMValueRef i = LLVMGetOperand(extension, 0), wide;
	LLVMTypeRef type = LLVMTypeOf(extension);
	LLVMOpcode opcode;

	if (!LLVMIsABinaryOperator(i) || LLVMGetIntTypeWidth(type) != 64 || !never_wraps(i))
		return;
	LLVMPositionBuilderBefore(b, extension);
	wide = LLVMBuildZExt(b, LLVMGetOperand(i, 0), type, "");
	if (LLVMIsAZExtInst(wide))
		widen_first(b, wide);
	wide = LLVMGetPreviousInstruction(extension);
	LLVMPositionBuilderBefore(b, extension);
	opcode = LLVMGetInstructionOpcode(i) == LLVMOr ? LLVMAdd : LLVMGetInstructionOpcode(i);
	wide = LLVMBuildBinOp(b, opcode, wide,
			      LLVMConstInt(type, LLVMConstIntGetZExtValue(LLVMGetOperand(i, 1)), 0),
			      "");
	if (LLVMIsABinaryOperator(wide)) {
		LLVMSetNUW(wide, 1);
		LLVMSetNSW(wide, 1);
	}
	LLVMReplaceAllUsesWith(extension, wide);
	LLVMInstructionEraseFromParent(extension);
}

void fay_make_unsigned(LLVMBuilderRef b, LLVMValueRef function)
{
	for (LLVMValueRef i = fay_first_of_function(function), next; i; i = next) {
		next = fay_next_of_function(i);
		switch (LLVMGetInstructionOpcode(i)) {
		case LLVMSExt:
		case LLVMICmp: make_unsigned(b, i); break;
		case LLVMZExt: widen_first(b, i); break;
		default: break;
		}
	}
}
