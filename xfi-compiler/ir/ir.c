/* SPDX-License-Identifier: MIT */
/* What is asked of calls, and what several passes build. */
#include "ir.h"

#include <string.h>

const char *const fay_helpers[FAY_HELPERS] = { "fay_flush", "fay_emit", "fay_try_read" };

bool fay_is_helper(const char *name)
{
	for (unsigned i = 0; i < FAY_HELPERS; i++)
		if (!strcmp(name, fay_helpers[i]))
			return true;
	return false;
}

static LLVMValueRef first_from(LLVMBasicBlockRef block)
{
	while (block && !LLVMGetFirstInstruction(block))
		block = LLVMGetNextBasicBlock(block);
	return block ? LLVMGetFirstInstruction(block) : NULL;
}

LLVMValueRef fay_first_of_function(LLVMValueRef function)
{
	return first_from(LLVMGetFirstBasicBlock(function));
}

LLVMValueRef fay_next_of_function(LLVMValueRef instruction)
{
	LLVMValueRef next = LLVMGetNextInstruction(instruction);

	return next ? next
		    : first_from(LLVMGetNextBasicBlock(LLVMGetInstructionParent(instruction)));
}

static LLVMValueRef first_from_function(LLVMValueRef function)
{
	LLVMValueRef first = NULL;

	for (; function && !first; function = LLVMGetNextFunction(function))
		first = fay_first_of_function(function);
	return first;
}

LLVMValueRef fay_first_of_module(LLVMModuleRef module)
{
	return first_from_function(LLVMGetFirstFunction(module));
}

LLVMValueRef fay_next_of_module(LLVMValueRef instruction)
{
	LLVMValueRef next = fay_next_of_function(instruction);

	return next ? next
		    : first_from_function(LLVMGetNextFunction(
			      LLVMGetBasicBlockParent(LLVMGetInstructionParent(instruction))));
}

bool fay_is_probe(const struct fay_unit *unit, LLVMValueRef function)
{
	size_t length;
	const char *name = LLVMGetValueName2(function, &length);

	for (uint32_t i = 0; i < unit->spec->probe_count; i++)
		if (!strcmp(unit->spec->probes[i].symbol, name))
			return true;
	return false;
}

const char *fay_callee(LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	size_t length;

	return LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &length) : NULL;
}

LLVMValueRef fay_inlined_function(struct fay_unit *unit, const char *name, LLVMTypeRef type)
{
	LLVMValueRef function = LLVMAddFunction(unit->module, name, type);
	unsigned kind = LLVMGetEnumAttributeKindForName("alwaysinline", 12);

	LLVMSetLinkage(function, LLVMInternalLinkage);
	LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
				LLVMCreateEnumAttribute(unit->context, kind, 0));
	return function;
}

LLVMValueRef fay_hide(LLVMBuilderRef b, LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v), function = LLVMFunctionType(type, &type, 1, 0);

	return LLVMBuildCall2(
		b, function,
		LLVMGetInlineAsm(function, "", 0, "=r,0", 4, 0, 0, LLVMInlineAsmDialectATT, 0), &v,
		1, "");
}

void fay_build_leave(LLVMBuilderRef b, LLVMValueRef function)
{
	LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(function));

	if (LLVMGetTypeKind(type) == LLVMVoidTypeKind)
		LLVMBuildRetVoid(b);
	else
		LLVMBuildRet(b, LLVMConstNull(type));
}
