/* SPDX-License-Identifier: MIT */
/*
 * The code generator likes ah, bh, ch and dh for "bits 8 to 15 of x". Those registers are outside
 * the verified subset, and no option turns them off. The two shapes of IR that lead to them are (x
 * >> 8) & 255 and the same cut to a byte. In these the 8 becomes a number that the code generator
 * does not know: it is loaded from a constant, once a probe, through a volatile load. (Arithmetic
 * that amounts to the same is seen through: a multiplication by 2^24 + 1, for one.) Done after all
 * passes.
 */
#include "lower.h"

static bool is_constant(LLVMValueRef v, uint64_t number)
{
	return LLVMIsAConstantInt(v) && LLVMGetIntTypeWidth(LLVMTypeOf(v)) <= 64 &&
	       LLVMConstIntGetZExtValue(v) == number;
}

/* x of x >> 8, else NULL */
static LLVMValueRef shifted(LLVMValueRef v)
{
	if (!LLVMIsAInstruction(v) || LLVMGetInstructionOpcode(v) != LLVMLShr ||
	    !is_constant(LLVMGetOperand(v, 1), 8))
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

static LLVMValueRef load_eight(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context);
	LLVMValueRef eight = LLVMGetNamedGlobal(unit->module, "fay.eight"), load;

	if (!eight) {
		eight = LLVMAddGlobal(unit->module, i64, "fay.eight");
		LLVMSetInitializer(eight, LLVMConstInt(i64, 8, 0));
		LLVMSetGlobalConstant(eight, 1);
		LLVMSetLinkage(eight, LLVMInternalLinkage);
	}
	LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
	load = LLVMBuildLoad2(b, i64, eight, "");
	LLVMSetVolatile(load, 1);
	return load;
}

void fay_avoid_high_bytes(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
		LLVMValueRef eight = NULL;

		for (LLVMValueRef i = fay_first_of_function(f); i; i = fay_next_of_function(i)) {
			LLVMValueRef x = source_of(i), amount;

			if (!x || LLVMGetIntTypeWidth(LLVMTypeOf(x)) > 64)
				continue;
			if (!eight)
				eight = load_eight(unit, b, f);
			LLVMPositionBuilderBefore(b, i);
			amount = LLVMBuildIntCast2(b, eight, LLVMTypeOf(x), 0, "");
			LLVMSetOperand(i, 0, LLVMBuildLShr(b, x, amount, ""));
		}
	}
	LLVMDisposeBuilder(b);
}
