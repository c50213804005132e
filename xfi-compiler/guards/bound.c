/* SPDX-License-Identifier: MIT */
/*
 * How a guard keeps an index within [0, last]:
 *
 *   mask    `and`, where all that it lets through is inside; one instruction
 *   clamp   a comparison and a conditional move to the last element
 *   check   a comparison and a branch that is never taken by an index that is inside; one that is
 *	     not becomes the last element. In loops whose next index is read from memory: what
 *	     follows need not wait for the comparison, while it would wait for a mask. No check
 *	     where speculation is confined.
 *
 * A mask of 8 or 16 bits is the copy that would be needed anyway. Until the optimiser is done,
 * those that it must not judge are calls of functions of which it knows nothing but the result's
 * range and that they have no effects.
 */
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "guards_private.h"

#define MASK_NAME "fay.mask"
#define CLAMP_NAME "fay.clamp"
#define CHECK_NAME "fay.check"
#define RARE 1
#define OFTEN 1048575

/* How many low bits of v are certainly 0. */
static unsigned zero_bits(LLVMValueRef v, int depth)
{
	unsigned a, b;

	if (LLVMIsAConstantInt(v))
		return LLVMConstIntGetZExtValue(v)
			       ? (unsigned)__builtin_ctzll(LLVMConstIntGetZExtValue(v))
			       : 63;
	if (!LLVMIsAInstruction(v) || depth > 6)
		return 0;
	switch (LLVMGetInstructionOpcode(v)) {
	case LLVMZExt:
	case LLVMSExt:
	case LLVMTrunc:
	case LLVMFreeze: return zero_bits(LLVMGetOperand(v, 0), depth + 1);
	case LLVMShl:
		return LLVMIsAConstantInt(LLVMGetOperand(v, 1)) &&
				       LLVMConstIntGetZExtValue(LLVMGetOperand(v, 1)) < 63
			       ? (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(v, 1))
			       : 0;
	case LLVMMul:
	case LLVMAnd:
		a = zero_bits(LLVMGetOperand(v, 0), depth + 1);
		b = zero_bits(LLVMGetOperand(v, 1), depth + 1);
		return a > b ? a : b;
	case LLVMAdd:
	case LLVMSub:
	case LLVMOr:
		a = zero_bits(LLVMGetOperand(v, 0), depth + 1);
		b = zero_bits(LLVMGetOperand(v, 1), depth + 1);
		return a < b ? a : b;
	default: return 0;
	}
}

unsigned fay_zero_bits(LLVMValueRef v)
{
	return zero_bits(v, 0);
}

/*
 * The mask that keeps a value with `zeros` low bits 0 within [0, last] and leaves what is within as
 * it is; 0 if there is none. 2^k - 1 does if the largest multiple of 2^zeros below 2^k is not past
 * last.
 */
static uint64_t mask_for(uint64_t last, unsigned zeros)
{
	uint64_t mask = last ? UINT64_MAX >> __builtin_clzll(last) : 0;

	if (zeros > 62)
		zeros = 62;
	return (mask & ~((UINT64_C(1) << zeros) - 1)) <= last ? mask : 0;
}

/* Whether v is, or is made of, a remainder by a constant: the optimiser knows its range, but the
 * machine code does not show it. */
static bool from_remainder(LLVMValueRef v, int depth)
{
	if (!LLVMIsAInstruction(v) || depth > 4)
		return false;
	switch (LLVMGetInstructionOpcode(v)) {
	case LLVMURem:
	case LLVMSRem: return true;
	case LLVMZExt:
	case LLVMSExt:
	case LLVMTrunc:
	case LLVMFreeze: return from_remainder(LLVMGetOperand(v, 0), depth + 1);
	case LLVMAdd:
	case LLVMSub:
	case LLVMMul:
	case LLVMShl:
	case LLVMOr:
		return from_remainder(LLVMGetOperand(v, 0), depth + 1) ||
		       from_remainder(LLVMGetOperand(v, 1), depth + 1);
	default: return false;
	}
}

/* Whether v is made of something that was read from memory. */
static bool from_memory(LLVMValueRef v, int depth)
{
	if (!LLVMIsAInstruction(v) || depth > 5)
		return false;
	if (LLVMIsALoadInst(v))
		return true;
	if (LLVMIsAPHINode(v)) {
		for (unsigned i = 0; i < LLVMCountIncoming(v); i++)
			if (from_memory(LLVMGetIncomingValue(v, i), depth + 1))
				return true;
		return false;
	}
	if (!LLVMIsABinaryOperator(v) && !LLVMIsACastInst(v) && !LLVMIsASelectInst(v) &&
	    !LLVMIsAFreezeInst(v))
		return false;
	for (int o = 0; o < LLVMGetNumOperands(v); o++)
		if (from_memory(LLVMGetOperand(v, (unsigned)o), depth + 1))
			return true;
	return false;
}

/* ---- while the optimiser runs ---- */

static LLVMValueRef declare(struct fay_unit *unit, const char *name, LLVMTypeRef type)
{
	static const char *const attributes[] = { "memory", "nounwind", "willreturn",
						  "speculatable" };
	LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);

	if (function)
		return function;
	function = LLVMAddFunction(unit->module, name, type);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) /* memory: 0, none */
		LLVMAddAttributeAtIndex(
			function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
			LLVMCreateEnumAttribute(unit->context,
						LLVMGetEnumAttributeKindForName(
							attributes[i], strlen(attributes[i])),
						0));
	return function;
}

void fay_set_metadata(LLVMContextRef context, LLVMValueRef i, const char *kind,
		      LLVMMetadataRef *operands, size_t count)
{
	LLVMSetMetadata(
		i, LLVMGetMDKindIDInContext(context, kind, (unsigned)strlen(kind)),
		LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, operands, count)));
}

static LLVMValueRef build_opaque(struct fay_unit *unit, LLVMBuilderRef b, const char *name,
				 LLVMValueRef v, uint64_t bound)
{
	LLVMTypeRef i64 = LLVMTypeOf(v), parameters[2] = { i64, i64 },
		    type = LLVMFunctionType(i64, parameters, 2, 0);
	LLVMValueRef arguments[2] = { v, LLVMConstInt(i64, bound, 0) };
	LLVMValueRef call =
		LLVMBuildCall2(b, type, declare(unit, name, type), arguments, 2, "guard");
	LLVMMetadataRef range[2] = { LLVMValueAsMetadata(LLVMConstInt(i64, 0, 0)),
				     LLVMValueAsMetadata(LLVMConstInt(i64, bound + 1, 0)) };

	fay_set_metadata(unit->context, call, "range", range, 2);
	return call;
}

LLVMValueRef fay_build_bound(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef at,
			     LLVMValueRef v, uint64_t last, unsigned zeros, bool in_loop)
{
	uint64_t mask = mask_for(last, zeros);
	LLVMValueRef bound = LLVMConstInt(LLVMTypeOf(v), mask || !last ? mask : last, 0);
	bool opaque = unit->confined || from_remainder(v, 0);

	if (!opaque && in_loop && last && mask != UINT8_MAX && mask != UINT16_MAX &&
	    from_memory(v, 0)) {
		unit->count.checks++;
		fay_mark(unit, b, at, "index checked not to be above %llu",
			 (unsigned long long)last);
		return build_opaque(unit, b, CHECK_NAME, v, last);
	}
	if (mask || !last) {
		unit->count.masks++;
		fay_mark(unit, b, at, "index masked to %llu", (unsigned long long)mask);
		return opaque ? build_opaque(unit, b, MASK_NAME, v, mask)
			      : LLVMBuildAnd(b, LLVMBuildFreeze(b, v, ""), bound, "guard");
	}
	unit->count.clamps++;
	fay_mark(unit, b, at, "index not above %llu", (unsigned long long)last);
	if (opaque)
		return build_opaque(unit, b, CLAMP_NAME, v, last);
	v = LLVMBuildFreeze(b, v, "");
	return LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, v, bound, ""), v, bound, "guard");
}

/* ---- afterwards ---- */

/*
 * A remainder is computed in 32 bits where it fits; then comparison and move shall be of that
 * width, too. What is cut off belongs to indices past the end.
 */
static void lower_bound(LLVMBuilderRef b, LLVMValueRef call, bool mask)
{
	LLVMValueRef v = LLVMGetOperand(call, 0), bound = LLVMGetOperand(call, 1), made;
	LLVMTypeRef i64 = LLVMTypeOf(v), i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(i64));
	bool narrow = LLVMConstIntGetZExtValue(bound) <= UINT32_MAX && from_remainder(v, 0);

	LLVMPositionBuilderBefore(b, call);
	v = LLVMBuildFreeze(b, v, "");
	if (narrow) {
		bound = LLVMConstInt(i32, LLVMConstIntGetZExtValue(bound), 0);
		v = LLVMBuildTrunc(b, v, i32, "");
	}
	if (mask)
		made = LLVMBuildAnd(b, v, bound, "guard");
	else
		made = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, v, bound, ""), v, bound,
				       "guard");
	if (narrow)
		made = LLVMBuildZExt(b, made, i64, "");
	LLVMReplaceAllUsesWith(call, made);
	LLVMInstructionEraseFromParent(call);
}

/* A block of its own for all that comes before i in its block. The other one keeps its name for
 * what comes after it. */
static LLVMBasicBlockRef split_before(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMBasicBlockRef block = LLVMGetInstructionParent(i),
			  head = LLVMInsertBasicBlockInContext(unit->context, block, "");
	LLVMValueRef value = LLVMBasicBlockAsValue(block), first;
	LLVMUseRef next;

	for (LLVMUseRef u = LLVMGetFirstUse(value); u; u = next) {
		LLVMValueRef jump = LLVMGetUser(u);

		next = LLVMGetNextUse(u);
		for (unsigned s = 0; s < LLVMGetNumSuccessors(jump); s++)
			if (LLVMGetSuccessor(jump, s) == block) {
				LLVMSetSuccessor(jump, s, head);
				next = LLVMGetFirstUse(value);
			}
	}
	LLVMPositionBuilderAtEnd(b, head);
	while ((first = LLVMGetFirstInstruction(block)) != i) {
		LLVMInstructionRemoveFromParent(first);
		LLVMInsertIntoBuilder(b, first);
	}
	return head;
}

/* v as a number that is not negative, the same as v wherever v is at most last. */
static LLVMValueRef without_sign(LLVMBuilderRef b, LLVMValueRef v, uint64_t last)
{
	LLVMValueRef narrow;

	if (!LLVMIsASExtInst(v))
		return v;
	narrow = LLVMGetOperand(v, 0);
	if (last >= UINT64_C(1) << (LLVMGetIntTypeWidth(LLVMTypeOf(narrow)) - 1))
		return v;
	return LLVMBuildZExt(b, narrow, LLVMTypeOf(v), "");
}

static void lower_check(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call)
{
	LLVMValueRef bound = LLVMGetOperand(call, 1), v, jump, made;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(unit->context);
	LLVMBasicBlockRef block = LLVMGetInstructionParent(call), head, rare;
	LLVMMetadataRef weights[3] = { LLVMMDStringInContext2(unit->context, "branch_weights", 14),
				       LLVMValueAsMetadata(LLVMConstInt(i32, RARE, 0)),
				       LLVMValueAsMetadata(LLVMConstInt(i32, OFTEN, 0)) };

	LLVMPositionBuilderBefore(b, call);
	v = without_sign(b, LLVMGetOperand(call, 0), LLVMConstIntGetZExtValue(bound));
	if (LLVMIsAZExtInst(v) && LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(v, 0))) < 32)
		v = fay_hide(b, v); /* a part of the register would be compared */
	else
		v = LLVMBuildFreeze(b, v, "");
	head = split_before(unit, b, call);
	rare = LLVMInsertBasicBlockInContext(unit->context, block, "");
	LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(call));
	jump = LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntUGT, v, bound, ""), rare, block);
	fay_set_metadata(unit->context, jump, "prof", weights, 3);
	LLVMPositionBuilderAtEnd(b, rare);
	LLVMBuildBr(b, block);
	LLVMPositionBuilderBefore(b, call);
	made = LLVMBuildPhi(b, LLVMTypeOf(v), "guard");
	LLVMAddIncoming(made, &v, &head, 1);
	LLVMAddIncoming(made, &bound, &rare, 1);
	LLVMSetCurrentDebugLocation2(b, NULL);
	LLVMReplaceAllUsesWith(call, made);
	LLVMInstructionEraseFromParent(call);
}

static void lower_calls(struct fay_unit *unit, const char *name)
{
	LLVMValueRef function = LLVMGetNamedFunction(unit->module, name);
	LLVMBuilderRef b;

	if (!function)
		return;
	b = LLVMCreateBuilderInContext(unit->context);
	for (LLVMUseRef u = LLVMGetFirstUse(function); u; u = LLVMGetFirstUse(function)) {
		if (!strcmp(name, CHECK_NAME))
			lower_check(unit, b, LLVMGetUser(u));
		else
			lower_bound(b, LLVMGetUser(u), !strcmp(name, MASK_NAME));
	}
	LLVMDeleteFunction(function);
	LLVMDisposeBuilder(b);
}

void fay_lower_bounds(struct fay_unit *unit)
{
	lower_calls(unit, MASK_NAME);
	lower_calls(unit, CLAMP_NAME);
}

void fay_lower_checks(struct fay_unit *unit)
{
	lower_calls(unit, CHECK_NAME);
}
