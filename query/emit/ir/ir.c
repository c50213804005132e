/* SPDX-License-Identifier: MIT */
/* Building blocks of generated code: numbers, memory, blocks. */
#include "ir.h"

#include <string.h>

#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>

void fay_codegen_init(struct fay_codegen *g)
{
	g->builder = LLVMCreateBuilderInContext(g->context);
	g->i1 = LLVMInt1TypeInContext(g->context);
	g->i8 = LLVMInt8TypeInContext(g->context);
	g->i64 = LLVMInt64TypeInContext(g->context);
	g->pointer = LLVMPointerTypeInContext(g->context, 0);
}

LLVMValueRef fay_codegen_i64(const struct fay_codegen *g, uint64_t value)
{
	return LLVMConstInt(g->i64, value, 0);
}

LLVMValueRef fay_codegen_at(const struct fay_codegen *g, LLVMValueRef base, LLVMValueRef offset)
{
	return LLVMBuildInBoundsGEP2(g->builder, g->i8, base, &offset, 1, "");
}

LLVMValueRef fay_codegen_load(const struct fay_codegen *g, LLVMValueRef base, uint64_t offset)
{
	LLVMValueRef load = LLVMBuildLoad2(g->builder, g->i64,
					   fay_codegen_at(g, base, fay_codegen_i64(g, offset)), "");
	LLVMSetAlignment(load, 8);
	return load;
}

void fay_codegen_store(const struct fay_codegen *g, LLVMValueRef base, uint64_t offset,
		       LLVMValueRef value)
{
	LLVMValueRef store = LLVMBuildStore(g->builder, value,
					    fay_codegen_at(g, base, fay_codegen_i64(g, offset)));
	LLVMSetAlignment(store, 8);
}

LLVMValueRef fay_codegen_intrinsic(const struct fay_codegen *g, const char *name,
				   LLVMValueRef *arguments, unsigned count)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMTypeRef type = g->i64;
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(g->module, id, &type, 1);
	return LLVMBuildCall2(g->builder, LLVMIntrinsicGetType(g->context, id, &type, 1), function,
			      arguments, count, "");
}

/* The kernel's error numbers are the last page, of numbers as of pointers. */
LLVMValueRef fay_codegen_is_error(struct fay_codegen *g, LLVMValueRef value)
{
	return LLVMBuildICmp(g->builder, LLVMIntUGE, value, fay_codegen_i64(g, (uint64_t)-4095),
			     "");
}

LLVMValueRef fay_codegen_extend(struct fay_codegen *g, LLVMValueRef word, struct fay_access access)
{
	if (access.bytes == 8 || !access.bytes)
		return word;
	LLVMValueRef part = LLVMBuildTrunc(g->builder, word,
					   LLVMIntTypeInContext(g->context, access.bytes * 8u), "");
	return access.is_signed ? LLVMBuildSExt(g->builder, part, g->i64, "")
				: LLVMBuildZExt(g->builder, part, g->i64, "");
}

LLVMBasicBlockRef fay_codegen_block(struct fay_codegen *g, const char *name)
{
	return LLVMAppendBasicBlockInContext(g->context, g->function, name);
}

void fay_codegen_continue(struct fay_codegen *g, LLVMBasicBlockRef block)
{
	LLVMPositionBuilderAtEnd(g->builder, block);
}

void fay_codegen_likely(struct fay_codegen *g, LLVMValueRef branch)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(g->context);
	LLVMMetadataRef weights[] = {
		LLVMMDStringInContext2(g->context, "branch_weights", 14),
		LLVMValueAsMetadata(LLVMConstInt(i32, 2000, 0)),
		LLVMValueAsMetadata(LLVMConstInt(i32, 1, 0)),
	};
	LLVMMetadataRef node = LLVMMDNodeInContext2(g->context, weights, 3);
	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(g->context, "prof", 4),
			LLVMMetadataAsValue(g->context, node));
}

LLVMValueRef fay_codegen_word(struct fay_codegen *g, LLVMValueRef value)
{
	return LLVMTypeOf(value) == g->i1 ? LLVMBuildZExt(g->builder, value, g->i64, "") : value;
}

LLVMValueRef fay_codegen_call(struct fay_codegen *g, const char *name, LLVMTypeRef result,
			      LLVMValueRef *arguments, unsigned count)
{
	LLVMTypeRef types[16];
	for (unsigned i = 0; i < count; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	LLVMTypeRef type = LLVMFunctionType(result, types, count, 0);
	LLVMValueRef function = LLVMGetNamedFunction(g->module, name);
	if (!function)
		function = LLVMAddFunction(g->module, name, type);
	return LLVMBuildCall2(g->builder, type, function, arguments, count, "");
}

int fay_codegen_link_bitcode(struct fay_codegen *g, const char *bytes, const char *end,
			     struct fay_error *error)
{
	LLVMModuleRef module;
	LLVMMemoryBufferRef buffer =
		LLVMCreateMemoryBufferWithMemoryRange(bytes, (size_t)(end - bytes), "bitcode", 0);
	bool failed = LLVMParseBitcodeInContext2(g->context, buffer, &module);
	LLVMDisposeMemoryBuffer(buffer);
	if (failed || LLVMLinkModules2(g->module, module))
		return fay_error_set(error, FAY_E_INTERNAL,
				     "query: code that the probe calls cannot be linked in");
	return FAY_OK;
}
