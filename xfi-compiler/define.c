/* SPDX-License-Identifier: MIT */
/*
 * Everything defined. C and LLVM call some arithmetic undefined (signed overflow, shifts by the width, division by zero, the leading
 * zeros of zero), and the optimiser then draws conclusions from its not happening: a guard can vanish because the index "cannot" be
 * so large. In a probe the numbers come from the traced program, so all of it happens. Before the first pass, therefore:
 *
 *   overflow      wraps: nsw, nuw, exact, inbounds, nneg and disjoint are taken off
 *   shifts        the amount counts modulo the width, as the processor has it
 *   divisions     x / 0 is x, x % 0 is 0, the smallest number / -1 is itself
 *   ctlz, cttz    of 0 are the width
 *   promises      about loaded values (!range, !nonnull ...) are dropped: state is whatever memory holds
 */
#include <string.h>

#include "unit.h"

/*
 * x / 0 is x, x % 0 is 0, the smallest number / -1 is itself. The divisor that the instruction gets is 2 in these cases: with 1
 * the code generator finds an addition with carry, whose result no interval shows to be other than 0.
 */
static void define_divide(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	LLVMValueRef x = LLVMGetOperand(i, 0), divisor = LLVMGetOperand(i, 1), zero, minus = NULL, safe, result, at;
	LLVMTypeRef type = LLVMTypeOf(divisor);
	bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem, quotient = opcode == LLVMUDiv || opcode == LLVMSDiv;

	if (LLVMIsAConstantInt(divisor) && !LLVMIsNull(divisor) && !(is_signed && LLVMConstIntGetSExtValue(divisor) == -1))
		return;
	if (!is_signed && fay_range_of(divisor, i).lo)
		return;
	at = LLVMGetNextInstruction(i);
	LLVMPositionBuilderBefore(b, i);
	x = LLVMBuildFreeze(b, x, "");
	divisor = LLVMBuildFreeze(b, divisor, "");
	zero = LLVMBuildICmp(b, LLVMIntEQ, divisor, LLVMConstNull(type), "");
	safe = LLVMBuildSelect(b, zero, LLVMConstInt(type, 2, 0), divisor, "");
	if (is_signed) {
		minus = LLVMBuildICmp(b, LLVMIntEQ, divisor, LLVMConstAllOnes(type), "");
		safe = LLVMBuildSelect(b, minus, LLVMConstInt(type, 2, 0), safe, "");
	}
	LLVMSetOperand(i, 0, x);
	LLVMSetOperand(i, 1, safe);
	LLVMPositionBuilderBefore(b, at);
	result = LLVMBuildSelect(b, zero, quotient ? x : LLVMConstNull(type), i, "");
	LLVMReplaceAllUsesWith(i, result);
	LLVMSetOperand(result, 2, i);
	if (minus) {
		LLVMValueRef last = LLVMBuildSelect(b, minus, quotient ? LLVMBuildNeg(b, x, "") : LLVMConstNull(type), result, "");

		LLVMReplaceAllUsesWith(result, last);
		LLVMSetOperand(last, 2, result);
	}
	unit->guards++;
}

/*
 * bsr and bsf leave their result undefined for 0, and a proof cannot see that it is not used then: set a bit that
 * changes nothing for any other value, and choose the width for 0 where the source asks for it.
 */
static void define_zero_count(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call, bool leading)
{
	LLVMValueRef x = LLVMGetOperand(call, 0), zero_undefined = LLVMGetOperand(call, 1), result;
	LLVMTypeRef type = LLVMTypeOf(x);
	unsigned width = LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
	bool defined = LLVMConstIntGetZExtValue(zero_undefined) == 0;

	if (!width || width > 64)
		return;
	LLVMPositionBuilderBefore(b, call);
	LLVMSetOperand(call, 0, LLVMBuildOr(b, x, LLVMConstInt(type, leading ? 1 : UINT64_C(1) << (width - 1), 0), ""));
	LLVMSetOperand(call, 1, LLVMConstInt(LLVMTypeOf(zero_undefined), 1, 0));
	if (!defined)
		return;
	LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(call));
	result = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, x, LLVMConstNull(type), ""), LLVMConstInt(type, width, 0),
				 call, "");
	LLVMReplaceAllUsesWith(call, result);
	LLVMSetOperand(result, 2, call);
}

/* The processor masks shift amounts of 32 and 64 bits itself, so this costs nothing there. */
static void define_shift(LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMValueRef amount = LLVMGetOperand(i, 1);
	LLVMTypeRef type = LLVMTypeOf(amount);
	unsigned width;

	if (LLVMIsAConstantInt(amount) || LLVMGetTypeKind(type) != LLVMIntegerTypeKind)
		return;
	width = LLVMGetIntTypeWidth(type);
	if (width & (width - 1) || width > 64)
		return;
	LLVMPositionBuilderBefore(b, i);
	LLVMSetOperand(i, 1, LLVMBuildAnd(b, amount, LLVMConstInt(type, width - 1, 0), ""));
}

static void drop_promises(struct fay_unit *unit, LLVMValueRef i)
{
	static const char *const kinds[] = {"range", "nonnull", "noundef", "align", "dereferenceable", "dereferenceable_or_null",
					    "invariant.load", "tbaa", "tbaa.struct"};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		LLVMSetMetadata(i, LLVMGetMDKindIDInContext(unit->context, kinds[k], (unsigned)strlen(kinds[k])), NULL);
}

static void define_instruction(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	const char *name;

	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAdd: case LLVMSub: case LLVMMul:
		LLVMSetNSW(i, 0);
		LLVMSetNUW(i, 0);
		return;
	case LLVMShl:
		LLVMSetNSW(i, 0);
		LLVMSetNUW(i, 0);
		define_shift(b, i);
		return;
	case LLVMLShr: case LLVMAShr:
		LLVMSetExact(i, 0);
		define_shift(b, i);
		return;
	case LLVMUDiv: case LLVMSDiv:
		LLVMSetExact(i, 0);
		define_divide(unit, b, i);
		return;
	case LLVMURem: case LLVMSRem:
		define_divide(unit, b, i);
		return;
	case LLVMGetElementPtr:
		LLVMSetIsInBounds(i, 0);
		return;
	case LLVMZExt:
		LLVMSetNNeg(i, 0);
		return;
	case LLVMOr:
		LLVMSetIsDisjoint(i, 0);
		return;
	case LLVMLoad:
		drop_promises(unit, i);
		return;
	case LLVMStore:
		drop_promises(unit, i);
		return;
	case LLVMCall:
		drop_promises(unit, i);
		name = fay_callee(i);
		if (name && (!strncmp(name, "llvm.ctlz", 9) || !strncmp(name, "llvm.cttz", 9)))
			define_zero_count(unit, b, i, name[7] == 'l');
		return;
	default:
		return;
	}
}

void fay_define(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k; k = LLVMGetNextBasicBlock(k))
			for (LLVMValueRef i = LLVMGetFirstInstruction(k), next; i; i = next) {
				next = LLVMGetNextInstruction(i);
				define_instruction(unit, b, i);
			}
	LLVMDisposeBuilder(b);
}
