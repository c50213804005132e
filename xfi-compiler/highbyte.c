/* SPDX-License-Identifier: MIT */
/*
 * The code generator likes ah, bh, ch and dh for "bits 8 to 15 of x". Those registers are outside the verified subset, and no option
 * turns them off, so the two shapes of IR that lead to them, (x >> 8) & 255 and the same cut to a byte, are replaced by
 *
 *     ((x & 0xffff) * (2^24 + 1)) >> 32
 *
 * which is the same number: x / 2^8 + x / 2^32 has the whole part of x / 2^8, since the second term is under 2^-16 and the
 * fraction of the first at most 255/256. Done last, after all passes that would see through it.
 */
#include "unit.h"

static bool is_constant(LLVMValueRef v, uint64_t number)
{
	return LLVMIsAConstantInt(v) && LLVMGetIntTypeWidth(LLVMTypeOf(v)) <= 64 && LLVMConstIntGetZExtValue(v) == number;
}

/* x of x >> 8, else NULL */
static LLVMValueRef shifted(LLVMValueRef v)
{
	if (!LLVMIsAInstruction(v) || LLVMGetInstructionOpcode(v) != LLVMLShr || !is_constant(LLVMGetOperand(v, 1), 8))
		return NULL;
	return LLVMGetIntTypeWidth(LLVMTypeOf(v)) >= 16 ? LLVMGetOperand(v, 0) : NULL;
}

static LLVMValueRef source_of(LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(i);

	if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
		return NULL;
	if (LLVMGetInstructionOpcode(i) == LLVMTrunc && LLVMGetIntTypeWidth(type) == 8)
		return shifted(LLVMGetOperand(i, 0));
	if (LLVMGetInstructionOpcode(i) == LLVMAnd && is_constant(LLVMGetOperand(i, 1), 255))
		return shifted(LLVMGetOperand(i, 0));
	return NULL;
}

void fay_avoid_high_bytes(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k))
			for (LLVMValueRef i = LLVMGetFirstInstruction(k), next; i; i = next) {
				LLVMValueRef x = source_of(i);

				next = LLVMGetNextInstruction(i);
				if (!x || LLVMGetIntTypeWidth(LLVMTypeOf(x)) > 64)
					continue;
				LLVMPositionBuilderBefore(b, i);
				x = LLVMBuildAnd(b, LLVMBuildIntCast2(b, x, i64, 0, ""), LLVMConstInt(i64, 0xffff, 0), "");
				x = LLVMBuildMul(b, x, LLVMConstInt(i64, (1u << 24) + 1, 0), "");
				x = LLVMBuildLShr(b, x, LLVMConstInt(i64, 32, 0), "");
				LLVMReplaceAllUsesWith(i, LLVMBuildIntCast2(b, x, LLVMTypeOf(i), 0, ""));
				LLVMInstructionEraseFromParent(i);
			}
	LLVMDisposeBuilder(b);
}
