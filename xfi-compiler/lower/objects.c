/* SPDX-License-Identifier: MIT */
/*
 * State objects. In a probe's source a state object is a global variable, so that authors write
 * plain C (`reads.n++`, an array index, a struct). There is no such memory in the traced program:
 * after inlining and guarding, every use of the object in a probe becomes an offset from the
 * probe's LOCAL or GLOBAL argument.
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "lower.h"

static LLVMValueRef helper(struct fay_unit *unit, const char *name, LLVMTypeRef *type)
{
	LLVMTypeRef pointer = LLVMPointerTypeInContext(unit->context, 0),
		    i64 = LLVMInt64TypeInContext(unit->context);
	LLVMTypeRef parameters[3] = { pointer, i64, pointer };
	LLVMValueRef f = LLVMGetNamedFunction(unit->module, name);

	*type = LLVMFunctionType(i64, parameters, !strcmp(name, "fay_emit") ? 3 : 2, 0);
	return f ? f : LLVMAddFunction(unit->module, name, *type);
}

static int lower_call(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef call, bool emit)
{
	LLVMValueRef object = LLVMGetOperand(call, 0), function, made, arguments[3];
	LLVMTypeRef type;
	unsigned state = 0;

	while (state < unit->spec->state_count && unit->objects[state].global != object)
		state++;
	if (state == unit->spec->state_count)
		return fay_refuse_at(unit, call, "which %s is meant must be known when compiling",
				     emit ? "stream" : "table");
	function = helper(unit, emit ? "fay_emit" : "fay_flush", &type);
	arguments[0] = LLVMGetParam(LLVMGetBasicBlockParent(LLVMGetInstructionParent(call)), 1);
	arguments[1] = LLVMConstInt(LLVMInt64TypeInContext(unit->context), state, 0);
	arguments[2] = LLVMGetOperand(call, 1);
	LLVMPositionBuilderBefore(b, call);
	made = LLVMBuildCall2(b, type, function, arguments, emit ? 3 : 2, "");
	LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(call));
	LLVMReplaceAllUsesWith(call, made);
	LLVMInstructionEraseFromParent(call);
	return 0;
}

int fay_lower_calls(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	int result = 0;

	for (LLVMValueRef i = fay_first_of_module(unit->module), next; i && !result; i = next) {
		const char *name;

		next = fay_next_of_module(i);
		name = LLVMIsACallInst(i) ? fay_callee(i) : NULL;
		if (name && !strcmp(name, "fay_object_flush"))
			result = lower_call(unit, b, i, false);
		else if (name && !strcmp(name, "fay_object_emit"))
			result = lower_call(unit, b, i, true);
	}
	LLVMDisposeBuilder(b);
	return result;
}

static bool mentions(LLVMValueRef v, LLVMValueRef global, int depth)
{
	if (v == global)
		return true;
	if (!LLVMIsAConstantExpr(v) || depth > 16)
		return false;
	for (int i = 0; i < LLVMGetNumOperands(v); i++)
		if (mentions(LLVMGetOperand(v, i), global, depth + 1))
			return true;
	return false;
}

/* A constant expression over the object as instructions before the builder's place, or NULL if it
 * is another kind. */
static LLVMValueRef rebuild(LLVMBuilderRef b, LLVMValueRef v, LLVMValueRef global,
			    LLVMValueRef with, int depth)
{
	LLVMValueRef operands[16], base, other;
	int count;

	if (v == global)
		return with;
	if (!mentions(v, global, 0))
		return v;
	if (depth > 16)
		return NULL;
	count = LLVMGetNumOperands(v);
	base = rebuild(b, LLVMGetOperand(v, 0), global, with, depth + 1);
	if (!base)
		return NULL;
	switch (LLVMGetConstOpcode(v)) {
	case LLVMGetElementPtr:
		if (count > 16)
			return NULL;
		for (int i = 1; i < count; i++)
			operands[i - 1] = LLVMGetOperand(v, i);
		return LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(v), base, operands,
				     (unsigned)count - 1, "");
	case LLVMPtrToInt: return LLVMBuildPtrToInt(b, base, LLVMTypeOf(v), "");
	case LLVMAdd:
	case LLVMSub:
		other = rebuild(b, LLVMGetOperand(v, 1), global, with, depth + 1);
		if (!other)
			return NULL;
		return LLVMGetConstOpcode(v) == LLVMAdd ? LLVMBuildAdd(b, base, other, "")
							: LLVMBuildSub(b, base, other, "");
	default: return NULL;
	}
}

static int lower_in(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef function,
		    const struct fay_object *object)
{
	LLVMValueRef region = LLVMGetParam(function, object->scope == FAY_SCOPE_LOCAL ? 1 : 2),
		     with = NULL;

	for (LLVMValueRef i = fay_first_of_function(function); i; i = fay_next_of_function(i)) {
		bool phi = LLVMIsAPHINode(i) != NULL;
		int count = phi ? (int)LLVMCountIncoming(i) : LLVMGetNumOperands(i);

		for (int o = 0; o < count; o++) {
			LLVMValueRef v = phi ? LLVMGetIncomingValue(i, o) : LLVMGetOperand(i, o),
				     made;

			if (!LLVMIsAConstant(v) || !mentions(v, object->global, 0))
				continue;
			if (!with) {
				LLVMValueRef offset = LLVMConstInt(
					LLVMInt64TypeInContext(unit->context), object->offset, 0);

				LLVMPositionBuilderBefore(
					b,
					LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
				with = LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context),
						     region, &offset, 1, "");
			}
			LLVMPositionBuilderBefore(
				b,
				phi ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(i, o)) : i);
			made = rebuild(b, v, object->global, with, 0);
			if (!made)
				return fay_refuse_at(unit, i,
						     "use of the address of a state object "
						     "that is not an access to it");
			LLVMSetOperand(i, o, made);
		}
	}
	return 0;
}

int fay_lower_objects(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	int result = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && !result;
	     f = LLVMGetNextFunction(f))
		for (unsigned o = 0; o < unit->object_count && !result && !LLVMIsDeclaration(f);
		     o++)
			result = lower_in(unit, b, f, &unit->objects[o]);
	for (unsigned o = 0; o < unit->object_count && !result; o++)
		LLVMSetLinkage(unit->objects[o].global, LLVMInternalLinkage); /* unused now */
	LLVMDisposeBuilder(b);
	return result;
}
