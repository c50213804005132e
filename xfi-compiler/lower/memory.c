/* SPDX-License-Identifier: MIT */
/*
 * memcpy, memmove, memset and memcmp of a constant size become loads and stores: a probe has no
 * libc, and string instructions are outside the verified subset. Short ones are unrolled. Longer
 * ones (zeroing a table, say) become a loop over words; the C API cannot split a block, so the loop
 * is a function of its own, inlined afterwards by the pipeline.
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "lower.h"

#define UNROLL_BYTES 128
#define COPY_MAX FAY_FILL_MAX

static LLVMValueRef at_offset(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef pointer,
			      uint64_t offset)
{
	LLVMValueRef index = LLVMConstInt(LLVMInt64TypeInContext(unit->context), offset, 0);

	return offset ? LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), pointer, &index, 1,
				      "")
		      : pointer;
}

static uint64_t piece_of(uint64_t left)
{
	return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* The byte repeated over `bytes` bytes. */
static LLVMValueRef splat(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef byte,
			  uint64_t bytes)
{
	LLVMTypeRef type = LLVMIntTypeInContext(unit->context, (unsigned)bytes * 8);

	if (bytes == 1)
		return byte;
	return LLVMBuildMul(b, LLVMBuildZExt(b, byte, type, ""),
			    LLVMConstInt(type, 0x0101010101010101u, 0), "");
}

static void expand_set(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef to, LLVMValueRef byte,
		       uint64_t size)
{
	for (uint64_t done = 0, n; done < size; done += n) {
		n = piece_of(size - done);
		LLVMSetAlignment(
			LLVMBuildStore(b, splat(unit, b, byte, n), at_offset(unit, b, to, done)),
			1);
	}
}

/* All loads before all stores: right for overlapping areas too. */
static void expand_copy(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef to, LLVMValueRef from,
			uint64_t size)
{
	LLVMValueRef values[UNROLL_BYTES];
	unsigned count = 0;

	for (uint64_t done = 0, n; done < size; done += n) {
		n = piece_of(size - done);
		values[count] =
			LLVMBuildLoad2(b, LLVMIntTypeInContext(unit->context, (unsigned)n * 8),
				       at_offset(unit, b, from, done), "");
		LLVMSetAlignment(values[count++], 1);
	}
	count = 0;
	for (uint64_t done = 0, n; done < size; done += n) {
		n = piece_of(size - done);
		LLVMSetAlignment(LLVMBuildStore(b, values[count++], at_offset(unit, b, to, done)),
				 1);
	}
}

/* void fay.words(ptr to, ptr from or i64 value): `words` 8-byte words, upwards. */
static LLVMValueRef words_function(struct fay_unit *unit, bool copy, uint64_t words)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context),
		    pointer = LLVMPointerTypeInContext(unit->context, 0);
	LLVMTypeRef parameters[2] = { pointer, copy ? pointer : i64 };
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(unit->context), parameters, 2, 0);
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	LLVMBasicBlockRef entry, loop, end;
	LLVMValueRef function, index, next, value, zero = LLVMConstNull(i64), place;
	char name[64];

	snprintf(name, sizeof(name), "fay.%s.%llu", copy ? "copy" : "set",
		 (unsigned long long)words);
	function = LLVMGetNamedFunction(unit->module, name);
	if (function) {
		LLVMDisposeBuilder(b);
		return function;
	}
	function = fay_inlined_function(unit, name, type);
	entry = LLVMAppendBasicBlockInContext(unit->context, function, "");
	loop = LLVMAppendBasicBlockInContext(unit->context, function, "words");
	end = LLVMAppendBasicBlockInContext(unit->context, function, "");
	LLVMPositionBuilderAtEnd(b, entry);
	LLVMBuildBr(b, loop);
	LLVMPositionBuilderAtEnd(b, loop);
	index = LLVMBuildPhi(b, i64, "");
	value = LLVMGetParam(function, 1);
	if (copy) {
		value = LLVMBuildLoad2(b, i64, LLVMBuildGEP2(b, i64, value, &index, 1, ""), "");
		LLVMSetAlignment(value, 1);
	}
	place = LLVMBuildGEP2(b, i64, LLVMGetParam(function, 0), &index, 1, "");
	LLVMSetAlignment(LLVMBuildStore(b, value, place), 1);
	next = LLVMBuildAdd(b, index, LLVMConstInt(i64, 1, 0), "");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, LLVMConstInt(i64, words, 0), ""),
			loop, end);
	LLVMAddIncoming(index, &zero, &entry, 1);
	LLVMAddIncoming(index, &next, &loop, 1);
	LLVMPositionBuilderAtEnd(b, end);
	LLVMBuildRetVoid(b);
	LLVMDisposeBuilder(b);
	return function;
}

/* i32 fay.compare.N(ptr a, ptr b): as memcmp of N bytes. */
static LLVMValueRef compare_function(struct fay_unit *unit, uint64_t size)
{
	LLVMTypeRef i8 = LLVMInt8TypeInContext(unit->context),
		    i32 = LLVMInt32TypeInContext(unit->context);
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context),
		    pointer = LLVMPointerTypeInContext(unit->context, 0);
	LLVMTypeRef parameters[2] = { pointer, pointer },
		    type = LLVMFunctionType(i32, parameters, 2, 0);
	LLVMBuilderRef b;
	LLVMBasicBlockRef entry, loop, more, differ, end;
	LLVMValueRef function, index, next, x, y, zero = LLVMConstNull(i64);
	char name[64];

	snprintf(name, sizeof(name), "fay.compare.%llu", (unsigned long long)size);
	function = LLVMGetNamedFunction(unit->module, name);
	if (function)
		return function;
	b = LLVMCreateBuilderInContext(unit->context);
	function = fay_inlined_function(unit, name, type);
	entry = LLVMAppendBasicBlockInContext(unit->context, function, "");
	loop = LLVMAppendBasicBlockInContext(unit->context, function, "bytes");
	more = LLVMAppendBasicBlockInContext(unit->context, function, "more");
	differ = LLVMAppendBasicBlockInContext(unit->context, function, "differ");
	end = LLVMAppendBasicBlockInContext(unit->context, function, "equal");
	LLVMPositionBuilderAtEnd(b, entry);
	LLVMBuildBr(b, size ? loop : end);
	LLVMPositionBuilderAtEnd(b, loop);
	index = LLVMBuildPhi(b, i64, "");
	x = LLVMBuildLoad2(b, i8, LLVMBuildGEP2(b, i8, LLVMGetParam(function, 0), &index, 1, ""),
			   "");
	y = LLVMBuildLoad2(b, i8, LLVMBuildGEP2(b, i8, LLVMGetParam(function, 1), &index, 1, ""),
			   "");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, x, y, ""), more, differ);
	LLVMPositionBuilderAtEnd(b, more);
	next = LLVMBuildAdd(b, index, LLVMConstInt(i64, 1, 0), "");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, LLVMConstInt(i64, size, 0), ""), loop,
			end);
	LLVMAddIncoming(index, &zero, &entry, 1);
	LLVMAddIncoming(index, &next, &more, 1);
	LLVMPositionBuilderAtEnd(b, differ);
	LLVMBuildRet(
		b, LLVMBuildSub(b, LLVMBuildZExt(b, x, i32, ""), LLVMBuildZExt(b, y, i32, ""), ""));
	LLVMPositionBuilderAtEnd(b, end);
	LLVMBuildRet(b, LLVMConstNull(i32));
	LLVMDisposeBuilder(b);
	return function;
}

static int expand_compare(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call)
{
	LLVMValueRef arguments[2] = { LLVMGetOperand(call, 0), LLVMGetOperand(call, 1) },
		     length = LLVMGetOperand(call, 2), f, made;

	if (!LLVMIsAConstantInt(length) || LLVMConstIntGetZExtValue(length) > FAY_TRY_READ_MAX)
		return fay_refuse_at(unit, call,
				     "memcmp of a variable size, or of more than %u bytes; use a "
				     "constant size, or "
				     "fay_string_compare() of <fay/string.h>",
				     FAY_TRY_READ_MAX);
	f = compare_function(unit, LLVMConstIntGetZExtValue(length));
	LLVMPositionBuilderBefore(b, call);
	made = LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, arguments, 2, "");
	LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(call));
	LLVMReplaceAllUsesWith(call, made);
	LLVMInstructionEraseFromParent(call);
	return 0;
}

bool fay_is_compare(const char *name)
{
	return !strcmp(name, "memcmp") || !strcmp(name, "bcmp");
}

static int expand_call(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call, bool copy,
		       bool move)
{
	LLVMValueRef to = LLVMGetOperand(call, 0), from = LLVMGetOperand(call, 1),
		     length = LLVMGetOperand(call, 2);
	uint64_t size, head;

	if (!LLVMIsAConstantInt(length))
		return fay_refuse_at(unit, call,
				     "memcpy or memset of a variable size; use a constant size, or "
				     "a loop over the bytes "
				     "with a constant bound");
	size = LLVMConstIntGetZExtValue(length);
	if (size > COPY_MAX || (move && size > UNROLL_BYTES))
		return fay_refuse_at(unit, call, "%s of %llu bytes at once is too much for a probe",
				     move ? "memmove" : "memcpy or memset",
				     (unsigned long long)size);
	LLVMPositionBuilderBefore(b, call);
	head = 0;
	if (size > UNROLL_BYTES) {
		LLVMValueRef f, arguments[2] = { to, from };

		head = size & ~UINT64_C(7);
		f = words_function(unit, copy, head / 8);
		if (!copy)
			arguments[1] = splat(unit, b, from, 8);
		LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, arguments, 2, "");
	}
	if (copy)
		expand_copy(unit, b, at_offset(unit, b, to, head), at_offset(unit, b, from, head),
			    size - head);
	else
		expand_set(unit, b, at_offset(unit, b, to, head), from, size - head);
	LLVMInstructionEraseFromParent(call);
	return 0;
}

int fay_expand_memory(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	int result = 0;

	for (LLVMValueRef i = fay_first_of_module(unit->module), next; i && !result; i = next) {
		const char *name;

		next = fay_next_of_module(i);
		name = LLVMIsACallInst(i) ? fay_callee(i) : NULL;
		if (!name)
			continue;
		if (!strncmp(name, "llvm.memset", 11))
			result = expand_call(unit, b, i, false, false);
		else if (!strncmp(name, "llvm.memcpy", 11))
			result = expand_call(unit, b, i, true, false);
		else if (!strncmp(name, "llvm.memmove", 12))
			result = expand_call(unit, b, i, true, true);
		else if (fay_is_compare(name) && LLVMIsDeclaration(LLVMGetCalledValue(i)))
			result = expand_compare(unit, b, i);
		else if (!strncmp(name, "llvm.assume", 11) ||
			 !strncmp(name, "llvm.experimental.noalias", 25))
			LLVMInstructionEraseFromParent(i);
	}
	LLVMDisposeBuilder(b);
	return result;
}
