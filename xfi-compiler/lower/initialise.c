/* SPDX-License-Identifier: MIT */
/*
 * Arrays on the stack that a loop fills. That every element was written before it is read at a
 * place that varies is a fact about the loop's rounds, which no interval shows; so such an array is
 * zero from the start, unless writes to constant places have filled it before. A probe's stack
 * holds what the traced program left there, which is nothing that a probe may read.
 *
 * Up to UNROLL_BYTES by single stores, which a proof sees as they are; what is larger by `rep
 * stosq`, whose count is a constant.
 */
#include <stdlib.h>
#include <string.h>

#include "lower.h"

#define UNROLL_BYTES 512
#define ARRAY_MAX 8192 /* what the stack can hold */

struct array {
	LLVMValueRef alloca;
	uint64_t size;
	uint8_t written[ARRAY_MAX]; /* by stores that come before the access in question */
};

/* The bytes that an instruction writes at a constant place of the array. */
static void take_write(struct fay_unit *unit, struct array *array, LLVMValueRef i)
{
	struct fay_address a;
	uint64_t size = 0;
	LLVMValueRef to;

	if (LLVMIsAStoreInst(i)) {
		to = LLVMGetOperand(i, 1);
		size = LLVMStoreSizeOfType(unit->layout, LLVMTypeOf(LLVMGetOperand(i, 0)));
	} else if (LLVMIsACallInst(i) && LLVMIsAFunction(LLVMGetCalledValue(i)) &&
		   !strcmp(fay_callee(i), "fay_try_read") &&
		   LLVMIsAConstantInt(LLVMGetOperand(i, 1))) {
		to = LLVMGetOperand(i, 0);
		size = LLVMConstIntGetZExtValue(LLVMGetOperand(i, 1));
	}
	if (!size || !fay_trace(unit, to, &a) || a.base != array->alloca || a.terms ||
	    a.constant < 0 || size > array->size || (uint64_t)a.constant > array->size - size)
		return;
	memset(array->written + a.constant, 1, size);
}

/* Whether all of the array was written when `load` is reached. */
static bool is_written(struct fay_unit *unit, const struct fay_flow *flow, struct array *array,
		       LLVMValueRef load)
{
	LLVMBasicBlockRef home = LLVMGetInstructionParent(load);

	memset(array->written, 0, array->size);
	for (unsigned k = 0; k < flow->count; k++) {
		if (!fay_flow_dominates(flow, flow->blocks[k], home))
			continue;
		for (LLVMValueRef i = LLVMGetFirstInstruction(flow->blocks[k]); i && i != load;
		     i = LLVMGetNextInstruction(i))
			take_write(unit, array, i);
	}
	return !memchr(array->written, 0, array->size);
}

/* Whether the array is read at a place that varies before it was written. */
static bool needs_zeros(struct fay_unit *unit, const struct fay_flow *flow, struct array *array)
{
	for (unsigned k = 0; k < flow->count; k++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(flow->blocks[k]); i;
		     i = LLVMGetNextInstruction(i)) {
			struct fay_address a;

			if (LLVMIsALoadInst(i) && fay_trace(unit, LLVMGetOperand(i, 0), &a) &&
			    a.base == array->alloca && a.terms && !is_written(unit, flow, array, i))
				return true;
		}
	return false;
}

/* With them the code generator would let arrays share a place that are not in use at the same time;
 * these are, from the start. */
static void drop_lifetime(LLVMValueRef alloca)
{
	LLVMUseRef next;

	for (LLVMUseRef u = LLVMGetFirstUse(alloca); u; u = next) {
		LLVMValueRef user = LLVMGetUser(u);

		next = LLVMGetNextUse(u);
		if (LLVMIsACallInst(user) && LLVMIsAFunction(LLVMGetCalledValue(user)) &&
		    !strncmp(fay_callee(user), "llvm.lifetime.", 14))
			LLVMInstructionEraseFromParent(user);
	}
}

static void store_zeros(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef to, uint64_t from,
			uint64_t bytes)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context),
		    i8 = LLVMInt8TypeInContext(unit->context);

	for (uint64_t done = 0, n; done < bytes; done += n) {
		LLVMValueRef offset = LLVMConstInt(i64, from + done, 0), store;

		n = bytes - done >= 8 ? 8 : 1;
		store = LLVMBuildStore(b, LLVMConstNull(n == 8 ? i64 : i8),
				       LLVMBuildGEP2(b, i8, to, &offset, 1, ""));
		LLVMSetAlignment(store, 1);
	}
}

static void store_many_zeros(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef to,
			     uint64_t words)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context),
		    pointer = LLVMPointerTypeInContext(unit->context, 0);
	LLVMTypeRef results[2] = { pointer, i64 }, parameters[3] = { i64, pointer, i64 };
	LLVMTypeRef type = LLVMFunctionType(LLVMStructTypeInContext(unit->context, results, 2, 0),
					    parameters, 3, 0);
	static const char constraints[] = "={di},={cx},{ax},0,1,~{memory}";
	LLVMValueRef arguments[3] = { LLVMConstNull(i64), to, LLVMConstInt(i64, words, 0) };

	LLVMBuildCall2(b, type,
		       LLVMGetInlineAsm(type, "rep stosq", 9, constraints, sizeof(constraints) - 1,
					1, 0, LLVMInlineAsmDialectATT, 0),
		       arguments, 3, "");
}

static void initialise(struct fay_unit *unit, LLVMBuilderRef b, const struct array *array)
{
	uint64_t words = array->size > UNROLL_BYTES ? array->size / 8 : 0;

	drop_lifetime(array->alloca);
	LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(array->alloca));
	if (words)
		store_many_zeros(unit, b, array->alloca, words);
	store_zeros(unit, b, array->alloca, 8 * words, array->size - 8 * words);
}

static int initialise_function(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function,
			       struct array *array)
{
	struct fay_flow *flow = fay_flow_create(function);

	if (!flow)
		return fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
	for (LLVMValueRef i = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)); i;
	     i = LLVMGetNextInstruction(i)) {
		struct fay_extent e;

		if (!LLVMIsAAllocaInst(i) || !fay_extent_of(unit, i, &e) || e.size > ARRAY_MAX)
			continue;
		array->alloca = i;
		array->size = e.size;
		if (needs_zeros(unit, flow, array))
			initialise(unit, b, array);
	}
	fay_flow_destroy(flow);
	return 0;
}

int fay_initialise_arrays(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	struct array *array = malloc(sizeof(*array));
	int result = array ? 0 : fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && !result;
	     f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			result = initialise_function(unit, b, f, array);
	free(array);
	LLVMDisposeBuilder(b);
	return result;
}
