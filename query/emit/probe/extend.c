/* SPDX-License-Identifier: MIT */
/* Calls of functions of C (query/check/extend.c), whose bitcode is linked in once all probes are
 * generated. */
#include "probe_private.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "fay/extension.h"

static LLVMTypeRef type_of(const struct fay_codegen *g, const struct fay_extension_type *type)
{
	return type->kind == FAY_EXTENSION_STRING ? g->pointer
	       : type->kind == FAY_EXTENSION_BOOL ? g->i1
						  : LLVMIntTypeInContext(g->context, type->bits);
}

/* A string's 16 bytes in the probe's frame: C wants an address. The last byte is a NUL. */
static LLVMValueRef string_in_frame(struct fay_codegen *g, struct fay_operand_value value)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(g->builder),
			  entry = LLVMGetEntryBasicBlock(g->function);
	LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(g->builder);
	LLVMPositionBuilder(g->builder, entry, LLVMGetFirstInstruction(entry));
	LLVMValueRef bytes = LLVMBuildAlloca(g->builder, LLVMArrayType2(g->i64, 2), "string");
	LLVMSetAlignment(bytes, 8);
	fay_codegen_continue(g, here);
	LLVMSetCurrentDebugLocation2(g->builder, place);
	fay_codegen_store(g, bytes, 0, value.low);
	fay_codegen_store(
		g, bytes, 8,
		LLVMBuildAnd(g->builder, value.high, fay_codegen_i64(g, UINT64_MAX >> 8), ""));
	return bytes;
}

static LLVMValueRef argument(struct fay_codegen *g, const struct fay_expr *expr,
			     const struct fay_extension_type *type)
{
	if (type->kind == FAY_EXTENSION_STRING)
		return string_in_frame(g, fay_codegen_beginning(g, expr));
	struct fay_operand_value value = fay_codegen_expr(g, expr);
	return type->kind == FAY_EXTENSION_BOOL || type->bits == 64
		       ? value.low
		       : LLVMBuildTrunc(g->builder, value.low, type_of(g, type), "");
}

/* The ABI's: who calls widens what is smaller than an int. */
static void widen(struct fay_codegen *g, LLVMValueRef call, unsigned index,
		  const struct fay_extension_type *type)
{
	const char *name =
		type->kind != FAY_EXTENSION_BOOL && type->is_signed ? "signext" : "zeroext";
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	if (type->kind == FAY_EXTENSION_BOOL ||
	    (type->kind == FAY_EXTENSION_INTEGER && type->bits < 32))
		LLVMAddCallSiteAttribute(call, index, LLVMCreateEnumAttribute(g->context, kind, 0));
}

LLVMValueRef fay_codegen_function_call(struct fay_codegen *g, const struct fay_expr *expr)
{
	const struct fay_extension_function *f = fay_expr_callee(g->p->query, expr);
	LLVMValueRef arguments[FAY_EXTENSION_PARAMETERS];
	unsigned count = 0;
	char symbol[512];
	g->extends = true;
	for (const struct fay_expr *at = expr->a; at; at = at->b, count++)
		arguments[count] = argument(g, at->a, &f->parameters[count]);
	snprintf(symbol, sizeof(symbol), FAY_EXTENSION_PREFIX "%s", f->name);
	LLVMValueRef call = fay_codegen_call(g, symbol, type_of(g, &f->result), arguments, count);
	for (unsigned i = 0; i < count; i++)
		widen(g, call, i + 1, &f->parameters[i]);
	widen(g, call, 0, &f->result);
	if (f->result.kind == FAY_EXTENSION_BOOL || f->result.bits == 64)
		return call;
	return f->result.is_signed ? LLVMBuildSExt(g->builder, call, g->i64, "")
				   : LLVMBuildZExt(g->builder, call, g->i64, "");
}

/* --- lines: without a place of its own for the probe's code, the code generator forgets those of
 * what is inlined into it --- */

void fay_codegen_begin_lines(struct fay_codegen *g)
{
	if (!g->p->query->extension_count)
		return;
	LLVMValueRef version =
		LLVMConstInt(LLVMInt32TypeInContext(g->context), LLVMDebugMetadataVersion(), 0);
	LLVMAddModuleFlag(g->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version",
			  strlen("Debug Info Version"), LLVMValueAsMetadata(version));
	g->lines = LLVMCreateDIBuilder(g->module);
	g->file = LLVMDIBuilderCreateFile(g->lines, "query", 5, ".", 1);
	LLVMDIBuilderCreateCompileUnit(g->lines, LLVMDWARFSourceLanguageC11, g->file, "fay", 3, 1,
				       "", 0, 0, "", 0, LLVMDWARFEmissionLineTablesOnly, 0, 0, 0,
				       "", 0, "", 0);
}

void fay_codegen_place_function(struct fay_codegen *g)
{
	if (!g->lines)
		return;
	size_t length;
	const char *name = LLVMGetValueName2(g->function, &length);
	LLVMMetadataRef type =
		LLVMDIBuilderCreateSubroutineType(g->lines, g->file, NULL, 0, LLVMDIFlagZero);
	LLVMMetadataRef place =
		LLVMDIBuilderCreateFunction(g->lines, g->file, name, length, name, length, g->file,
					    1, type, 0, 1, 1, LLVMDIFlagZero, 1);
	LLVMSetSubprogram(g->function, place);
	LLVMSetCurrentDebugLocation2(
		g->builder, LLVMDIBuilderCreateDebugLocation(g->context, 1, 0, place, NULL));
}

void fay_codegen_end_lines(struct fay_codegen *g)
{
	if (!g->lines)
		return;
	LLVMDIBuilderFinalize(g->lines);
	LLVMDisposeDIBuilder(g->lines);
	g->lines = NULL;
}
