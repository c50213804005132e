/* SPDX-License-Identifier: MIT */
/*
 * Helpers called by assembly statements, where the code generator's own calls will not do:
 *
 * - Under `speculation: confined` through their slots, each time. Where a probe calls one helper
 *   several times, the code generator loads its address once and keeps it in a register, or on the
 *   stack; that is refused, because a reload from the stack may be given what was there before.
 * - fay_flush() with all registers kept. A table is flushed once in a great while, but a helper may
 *   change nine registers, and what a probe may change the dispatcher saves at every event.
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

static void set_element_type(struct fay_unit *unit, LLVMValueRef call, unsigned parameter,
			     LLVMTypeRef type)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("elementtype", strlen("elementtype"));

	LLVMAddCallSiteAttribute(call, parameter + 1,
				 LLVMCreateTypeAttribute(unit->context, kind, type));
}

/*
 * An even number of pushes keeps the stack aligned. The frame has a word, of which the statement
 * does not make use: else the code generator may place it where there is no frame, and no
 * alignment.
 */
static void replace_flush(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call)
{
	static const char text[] = "pushq %rcx\npushq %rdx\npushq %rsi\npushq %rdi\n"
				   "pushq %r8\npushq %r9\npushq %r10\npushq %r11\n"
				   "movq $1, %rdi\nmovl $2, %esi\n"
				   "callq *fay_flush@GOTPCREL(%rip)\n"
				   "popq %r11\npopq %r10\npopq %r9\npopq %r8\n"
				   "popq %rdi\npopq %rsi\npopq %rdx\npopq %rcx",
			  constraints[] = "={ax},r,i,*m,~{flags},~{memory}";
	LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call)),
		     arguments[] = { LLVMGetOperand(call, 0), LLVMGetOperand(call, 1), NULL },
		     statement = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
	LLVMTypeRef word = LLVMTypeOf(call),
		    types[] = { LLVMTypeOf(arguments[0]), LLVMTypeOf(arguments[1]),
				LLVMTypeOf(arguments[0]) },
		    type = LLVMFunctionType(word, types, 3, 0);

	LLVMPositionBuilderBefore(b, statement);
	arguments[2] = LLVMBuildAlloca(b, word, "");
	LLVMPositionBuilderBefore(b, call);
	statement = LLVMGetInlineAsm(type, text, sizeof(text) - 1, constraints,
				     sizeof(constraints) - 1, 1, 1, LLVMInlineAsmDialectATT, 0);
	statement = LLVMBuildCall2(b, type, statement, arguments, 3, "");
	set_element_type(unit, statement, 2, word);
	LLVMReplaceAllUsesWith(call, statement);
	LLVMInstructionEraseFromParent(call);
}

/*
 * Of a register of which only a part was written, as where a byte is computed, nothing is known any
 * more once it was pushed. Whether there may be such a one: numbers of 16 bits and less that are
 * used in another block than their own.
 */
static bool carries_parts(LLVMValueRef function)
{
	for (LLVMValueRef i = fay_first_of_function(function); i; i = fay_next_of_function(i)) {
		if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMIntegerTypeKind ||
		    LLVMGetIntTypeWidth(LLVMTypeOf(i)) > 16)
			continue;
		for (LLVMUseRef use = LLVMGetFirstUse(i); use; use = LLVMGetNextUse(use))
			if (LLVMGetInstructionParent(LLVMGetUser(use)) !=
			    LLVMGetInstructionParent(i))
				return true;
	}
	return false;
}

void fay_flush_keeping_registers(struct fay_unit *unit)
{
	LLVMValueRef flush = LLVMGetNamedFunction(unit->module, "fay_flush");
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMUseRef use = flush ? LLVMGetFirstUse(flush) : NULL, next; use; use = next) {
		LLVMValueRef call = LLVMGetUser(use);

		next = LLVMGetNextUse(use);
		if (LLVMIsACallInst(call) && LLVMGetCalledValue(call) == flush &&
		    LLVMIsAConstantInt(LLVMGetOperand(call, 1)) &&
		    !carries_parts(LLVMGetBasicBlockParent(LLVMGetInstructionParent(call))))
			replace_flush(unit, b, call);
	}
	LLVMDisposeBuilder(b);
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
