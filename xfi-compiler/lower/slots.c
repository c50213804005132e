/* SPDX-License-Identifier: MIT */
/*
 * Helpers called through their slots, each time. Where a probe calls one helper several times, the
 * code generator loads its address once and keeps it in a register, or on the stack; under
 * `speculation: confined` that is refused, because a reload from the stack may be given what was
 * there before. An assembly statement that is the call leaves it no choice.
 */
#include <stdio.h>
#include <string.h>

#include "lower.h"

#define ARGUMENTS_MAX 3

/* What a call loses beyond the registers of its arguments: of general registers everything that the
 * ABI allows, no vectors. */
static const char *constraints_of(unsigned arguments)
{
	static const char *const constraints[ARGUMENTS_MAX + 1] = {
		[2] = "={ax},={di},={si},1,2,~{dx},~{cx},~{r8},~{r9},~{r10},~{r11},~{flags},~{"
		      "memory}",
		[3] = "={ax},={di},={si},={dx},1,2,3,~{cx},~{r8},~{r9},~{r10},~{r11},~{flags},~{"
		      "memory}",
	};

	return arguments <= ARGUMENTS_MAX ? constraints[arguments] : NULL;
}

static int replace_call(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call)
{
	unsigned count = LLVMGetNumArgOperands(call);
	const char *constraints = constraints_of(count);
	LLVMTypeRef types[1 + ARGUMENTS_MAX];
	LLVMValueRef arguments[ARGUMENTS_MAX];
	char text[64];

	if (!constraints || LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMIntegerTypeKind)
		return fay_refuse_at(unit, call, "%s is not called like a helper",
				     fay_callee(call));
	types[0] = LLVMTypeOf(call);
	for (unsigned i = 0; i < count; i++) {
		arguments[i] = LLVMGetOperand(call, i);
		types[1 + i] = LLVMTypeOf(arguments[i]);
	}
	int length = snprintf(text, sizeof(text), "callq *%s@GOTPCREL(%%rip)", fay_callee(call));
	LLVMTypeRef results = LLVMStructTypeInContext(unit->context, types, count + 1, 0),
		    type = LLVMFunctionType(results, types + 1, count, 0);
	/* "align stack": a statement does not look like a call otherwise. */
	LLVMValueRef statement =
		LLVMGetInlineAsm(type, text, (size_t)length, constraints, strlen(constraints), 1, 1,
				 LLVMInlineAsmDialectATT, 0);

	LLVMPositionBuilderBefore(b, call);
	LLVMReplaceAllUsesWith(
		call, LLVMBuildExtractValue(
			      b, LLVMBuildCall2(b, type, statement, arguments, count, ""), 0, ""));
	LLVMInstructionEraseFromParent(call);
	return 0;
}

int fay_call_through_slots(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	int result = 0;

	for (unsigned h = 0; h < FAY_HELPERS && !result; h++) {
		LLVMValueRef helper = LLVMGetNamedFunction(unit->module, fay_helpers[h]);
		LLVMUseRef use;

		while (helper && !result && (use = LLVMGetFirstUse(helper))) {
			LLVMValueRef call = LLVMGetUser(use);

			result = LLVMIsACallInst(call) && LLVMGetCalledValue(call) == helper
					 ? replace_call(unit, b, call)
					 : fay_refuse_at(
						   unit, helper,
						   "the address of %s is used, not only called",
						   fay_helpers[h]);
		}
	}
	LLVMDisposeBuilder(b);
	return result;
}
