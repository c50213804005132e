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

const char *fay_callee(LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	size_t length;

	return LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &length) : NULL;
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
