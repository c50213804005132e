/* SPDX-License-Identifier: MIT */
/*
 * Everything defined. C and LLVM call some arithmetic undefined (signed overflow, shifts by the
 * width, division by zero, the leading zeros of zero), and the optimiser then draws conclusions
 * from its not happening: a guard can vanish because the index "cannot" be so large. In a probe the
 * numbers come from the traced program, so all of it happens. Before the first pass, therefore:
 *
 *   overflow      wraps: nsw, nuw, exact, inbounds, nneg and disjoint are taken off
 *   shifts        the amount counts modulo the width, as the processor has it
 *   divisions     x / 0 is x, x % 0 is 0, the smallest number / -1 is itself
 *   conversions   of a floating-point number that does not fit give what the instruction gives
 *   ctlz, cttz    of 0 are the width
 *   promises      about loaded values (!range, !nonnull ...) are dropped: state is whatever memory
 *		   holds
 */
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "lower.h"

static LLVMValueRef build_negative(LLVMBuilderRef b, LLVMValueRef v)
{
	return LLVMBuildICmp(b, LLVMIntSLT, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

static LLVMValueRef build_magnitude(LLVMBuilderRef b, LLVMValueRef v)
{
	return LLVMBuildSelect(b, build_negative(b, v), LLVMBuildNeg(b, v, ""), v, "");
}

/* Quotient or remainder of x and y, y not 0, in the builder's block. */
static LLVMValueRef build_division(LLVMBuilderRef b, LLVMOpcode opcode, LLVMValueRef x,
				   LLVMValueRef y)
{
	bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem,
	     quotient = opcode == LLVMUDiv || opcode == LLVMSDiv;
	LLVMOpcode plain = quotient ? LLVMUDiv : LLVMURem;
	LLVMValueRef made, minus;

	if (!is_signed)
		return LLVMBuildBinOp(b, plain, x, y, "");
	made = LLVMBuildBinOp(b, plain, build_magnitude(b, x), build_magnitude(b, y), "");
	minus = build_negative(b, quotient ? LLVMBuildXor(b, x, y, "") : x);
	return LLVMBuildSelect(b, minus, LLVMBuildNeg(b, made, ""), made, "");
}

/* type fay.division(x, y): a function, inlined later, because the C API cannot split the block of
 * the division. */
static LLVMValueRef division_function(struct fay_unit *unit, LLVMOpcode opcode, LLVMTypeRef type)
{
	bool quotient = opcode == LLVMUDiv || opcode == LLVMSDiv;
	LLVMTypeRef parameters[2] = { type, type };
	LLVMBasicBlockRef from[2], out;
	LLVMValueRef function, x, y, values[2], phi;
	LLVMBuilderRef b;
	char name[64];

	snprintf(name, sizeof(name), "fay.division.%u.%u", (unsigned)opcode,
		 LLVMGetIntTypeWidth(type));
	function = LLVMGetNamedFunction(unit->module, name);
	if (function)
		return function;
	b = LLVMCreateBuilderInContext(unit->context);
	function = fay_inlined_function(unit, name, LLVMFunctionType(type, parameters, 2, 0));
	from[0] = LLVMAppendBasicBlockInContext(unit->context, function, "");
	from[1] = LLVMAppendBasicBlockInContext(unit->context, function, "");
	out = LLVMAppendBasicBlockInContext(unit->context, function, "");
	LLVMPositionBuilderAtEnd(b, from[0]);
	x = LLVMBuildFreeze(b, LLVMGetParam(function, 0), "");
	y = LLVMBuildFreeze(b, LLVMGetParam(function, 1), "");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, y, LLVMConstNull(type), ""), out, from[1]);
	LLVMPositionBuilderAtEnd(b, from[1]);
	values[0] = quotient ? x : LLVMConstNull(type);
	values[1] = build_division(b, opcode, x, y);
	LLVMBuildBr(b, out);
	LLVMPositionBuilderAtEnd(b, out);
	phi = LLVMBuildPhi(b, type, "");
	LLVMAddIncoming(phi, values, from, 2);
	LLVMBuildRet(b, phi);
	LLVMDisposeBuilder(b);
	return function;
}

/*
 * x / 0 is x, x % 0 is 0, the smallest number / -1 is itself. The test for 0 is a branch: the ways
 * to do without one end in arithmetic (an addition with carry, a conditional move on the carry of a
 * negation) whose result no interval shows to be other than 0. Signed division goes by the
 * magnitudes, as unsigned division cannot overflow.
 */
static void define_divide(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	LLVMValueRef arguments[2] = { LLVMGetOperand(i, 0), LLVMGetOperand(i, 1) }, function, made,
		     y = arguments[1];
	bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem;
	LLVMTypeRef type = LLVMTypeOf(y);

	if (LLVMIsAConstantInt(y) && !LLVMIsNull(y) &&
	    !(is_signed && LLVMConstIntGetSExtValue(y) == -1))
		return;
	if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) > 64)
		return;
	function = division_function(unit, opcode, type);
	LLVMPositionBuilderBefore(b, i);
	made = LLVMBuildCall2(b, LLVMGlobalGetValueType(function), function, arguments, 2, "");
	LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(i));
	LLVMReplaceAllUsesWith(i, made);
	LLVMInstructionEraseFromParent(i);
	unit->count.divisions++;
}

/*
 * bsr and bsf leave their result undefined for 0, and a proof cannot see that it is not used then:
 * set a bit that changes nothing for any other value, and choose the width for 0 where the source
 * asks for it.
 */
static void define_zero_count(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call,
			      bool leading)
{
	LLVMValueRef x = LLVMGetOperand(call, 0), zero_undefined = LLVMGetOperand(call, 1), result;
	LLVMTypeRef type = LLVMTypeOf(x);
	unsigned width =
		LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
	bool defined = LLVMConstIntGetZExtValue(zero_undefined) == 0;

	if (!width || width > 64)
		return;
	LLVMPositionBuilderBefore(b, call);
	LLVMSetOperand(call, 0,
		       LLVMBuildOr(b, x,
				   LLVMConstInt(type, leading ? 1 : UINT64_C(1) << (width - 1), 0),
				   ""));
	LLVMSetOperand(call, 1, LLVMConstInt(LLVMTypeOf(zero_undefined), 1, 0));
	if (!defined)
		return;
	LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(call));
	result = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, x, LLVMConstNull(type), ""),
				 LLVMConstInt(type, width, 0), call, "");
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
	static const char *const kinds[] = { "range",           "nonnull",
					     "noundef",         "align",
					     "dereferenceable", "dereferenceable_or_null",
					     "invariant.load",  "tbaa",
					     "tbaa.struct" };

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		LLVMSetMetadata(i,
				LLVMGetMDKindIDInContext(unit->context, kinds[k],
							 (unsigned)strlen(kinds[k])),
				NULL);
}

static void define_instruction(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	const char *name;

	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAdd:
	case LLVMSub:
	case LLVMMul:
		LLVMSetNSW(i, 0);
		LLVMSetNUW(i, 0);
		return;
	case LLVMShl:
		LLVMSetNSW(i, 0);
		LLVMSetNUW(i, 0);
		define_shift(b, i);
		return;
	case LLVMLShr:
	case LLVMAShr:
		LLVMSetExact(i, 0);
		define_shift(b, i);
		return;
	case LLVMUDiv:
	case LLVMSDiv:
		LLVMSetExact(i, 0);
		define_divide(unit, b, i);
		return;
	case LLVMURem:
	case LLVMSRem: define_divide(unit, b, i); return;
	case LLVMFPToSI:
	case LLVMFPToUI: fay_define_conversion(b, i); return;
	case LLVMGetElementPtr: LLVMSetIsInBounds(i, 0); return;
	case LLVMZExt: LLVMSetNNeg(i, 0); return;
	case LLVMOr: LLVMSetIsDisjoint(i, 0); return;
	case LLVMLoad: drop_promises(unit, i); return;
	case LLVMStore: drop_promises(unit, i); return;
	case LLVMCall:
		drop_promises(unit, i);
		name = fay_callee(i);
		if (name && (!strncmp(name, "llvm.ctlz", 9) || !strncmp(name, "llvm.cttz", 9)))
			define_zero_count(unit, b, i, name[7] == 'l');
		return;
	default: return;
	}
}

void fay_define(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module),
			  last = LLVMGetLastFunction(unit->module);
	     f;
	     f = f == last ? NULL : LLVMGetNextFunction(f)) /* not those that are added meanwhile */
		for (LLVMValueRef i = fay_first_of_function(f), next; i; i = next) {
			next = fay_next_of_function(i);
			define_instruction(unit, b, i);
		}
	LLVMDisposeBuilder(b);
}
