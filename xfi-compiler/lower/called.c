/* SPDX-License-Identifier: MIT */
/*
 * Functions that stay functions. Everything is inlined into the probes, so that each pointer shows
 * what it is based on; but a large function of numbers that would be there many times is called
 * instead. The body stays where it is, is inlined into one function that has the probe's three
 * arguments before its own, and that one is called. Until everything else is inlined, nobody knows
 * which function a call ends up in: stand-ins take the place of LOCAL and GLOBAL.
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "lower.h"

#define NUMBERS 3      /* arguments: six registers less the probe's three */
#define LEAST_SIZE 100 /* instructions, in the function and in what it has inlined */
#define LEAST_GAIN 1200
#define LOCAL_STAND_IN "fay.local"
#define GLOBAL_STAND_IN "fay.global"

struct candidate {
	LLVMValueRef function;
	uint64_t size, copies; /* as if all were inlined */
	bool done;
};

bool fay_is_called(LLVMValueRef function)
{
	return LLVMGetStringAttributeAtIndex(function,
					     (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
					     FAY_CALLED, strlen(FAY_CALLED)) != NULL;
}

/* What will be an instruction, roughly: the front end keeps variables in memory, and these go. */
static bool counts(LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAlloca:
	case LLVMLoad:
	case LLVMStore:
	case LLVMBr: return false;
	case LLVMCall: return !LLVMIsAIntrinsicInst(i);
	default: return true;
	}
}

static bool is_number(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
}

static bool takes_numbers(LLVMValueRef function)
{
	LLVMTypeRef type = LLVMGlobalGetValueType(function), parameters[NUMBERS],
		    result = LLVMGetReturnType(type);

	if (LLVMIsFunctionVarArg(type) || LLVMCountParamTypes(type) > NUMBERS)
		return false;
	if (LLVMGetTypeKind(result) != LLVMVoidTypeKind && !is_number(result))
		return false;
	LLVMGetParamTypes(type, parameters);
	for (unsigned i = 0; i < LLVMCountParamTypes(type); i++)
		if (!is_number(parameters[i]))
			return false;
	return true;
}

static struct candidate *find(struct candidate *list, size_t count, LLVMValueRef function)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].function == function)
			return &list[i];
	return NULL;
}

/* Calls the visitor for each call of a function of the list in `function`; returns the number of
 * other instructions. */
static uint64_t each_call(struct candidate *list, size_t count, LLVMValueRef function,
			  void (*visit)(struct candidate *callee, void *), void *data)
{
	uint64_t size = 0;

	for (LLVMValueRef i = fay_first_of_function(function); i; i = fay_next_of_function(i)) {
		struct candidate *callee =
			LLVMIsACallInst(i) ? find(list, count, LLVMGetCalledValue(i)) : NULL;

		if (callee)
			visit(callee, data);
		else
			size += counts(i);
	}
	return size;
}

struct measure {
	uint64_t sum;
	bool waits;
};

static void add_size(struct candidate *callee, void *data)
{
	struct measure *m = data;

	m->waits |= !callee->done;
	m->sum += callee->size;
}

/* Callees before callers; there is no recursion, so each round finds at least one. Puts them in
 * that order. */
static void order_by_calls(struct candidate *list, size_t count)
{
	for (size_t ordered = 0; ordered < count;) {
		size_t before = ordered;

		for (size_t i = ordered; i < count; i++) {
			struct measure m = { 0 };
			uint64_t own = each_call(list, count, list[i].function, add_size, &m);
			struct candidate c = list[i];

			if (m.waits)
				continue;
			c.size = own + m.sum;
			c.done = true;
			list[i] = list[ordered];
			list[ordered++] = c;
		}
		if (ordered == before)
			return;
	}
}

static void add_copies(struct candidate *callee, void *data)
{
	callee->copies += *(const uint64_t *)data;
}

static LLVMValueRef stand_in(struct fay_unit *unit, const char *name)
{
	LLVMValueRef g = LLVMGetNamedGlobal(unit->module, name);

	return g ? g : LLVMAddGlobal(unit->module, LLVMInt8TypeInContext(unit->context), name);
}

/* (event, LOCAL, GLOBAL, numbers...), with the body inlined into it; every call of `body` becomes
 * one of it. */
static int make_called(struct fay_unit *unit, LLVMValueRef body)
{
	LLVMTypeRef pointer = LLVMPointerTypeInContext(unit->context, 0),
		    type = LLVMGlobalGetValueType(body), result = LLVMGetReturnType(type), whole;
	LLVMTypeRef parameters[3 + NUMBERS] = { pointer, pointer, pointer };
	LLVMValueRef arguments[3 + NUMBERS], function, call, *calls;
	LLVMBuilderRef b;
	unsigned count = LLVMCountParamTypes(type);
	size_t call_count = 0, length;
	char name[128];

	for (LLVMUseRef u = LLVMGetFirstUse(body); u; u = LLVMGetNextUse(u))
		call_count++;
	calls = calloc(call_count + 1, sizeof(*calls));
	if (!calls)
		return fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
	call_count = 0;
	for (LLVMUseRef u = LLVMGetFirstUse(body); u; u = LLVMGetNextUse(u))
		calls[call_count++] = LLVMGetUser(u);
	LLVMGetParamTypes(type, parameters + 3);
	whole = LLVMFunctionType(result, parameters, count + 3, 0);
	snprintf(name, sizeof(name), "%s", LLVMGetValueName2(body, &length));
	LLVMSetValueName2(body, "", 0);
	function = LLVMAddFunction(unit->module, name, whole);
	LLVMSetLinkage(function, LLVMInternalLinkage);
	LLVMAddAttributeAtIndex(
		function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
		LLVMCreateStringAttribute(unit->context, FAY_CALLED, strlen(FAY_CALLED), "", 0));
	LLVMSetSubprogram(function, LLVMGetSubprogram(body)); /* the lines are those of the body */
	LLVMSetSubprogram(body, NULL);
	b = LLVMCreateBuilderInContext(unit->context);
	LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(unit->context, function, ""));
	for (unsigned i = 0; i < count; i++)
		arguments[i] = LLVMGetParam(function, 3 + i);
	call = LLVMBuildCall2(b, type, body, arguments, count, "");
	if (LLVMGetTypeKind(result) == LLVMVoidTypeKind)
		LLVMBuildRetVoid(b);
	else
		LLVMBuildRet(b, call);
	arguments[0] = LLVMGetPoison(pointer); /* numbers are all that it gets of the event */
	arguments[1] = stand_in(unit, LOCAL_STAND_IN);
	arguments[2] = stand_in(unit, GLOBAL_STAND_IN);
	for (size_t i = 0; i < call_count; i++) {
		for (unsigned k = 0; k < count; k++)
			arguments[3 + k] = LLVMGetOperand(calls[i], k);
		LLVMPositionBuilderBefore(b, calls[i]);
		call = LLVMBuildCall2(b, whole, function, arguments, count + 3, "");
		LLVMInstructionSetDebugLoc(call, LLVMInstructionGetDebugLoc(calls[i]));
		LLVMReplaceAllUsesWith(calls[i], call);
		LLVMInstructionEraseFromParent(calls[i]);
	}
	LLVMDisposeBuilder(b);
	free(calls);
	return 0;
}

int fay_keep_functions(struct fay_unit *unit)
{
	struct candidate *list;
	size_t count = 0, at = 0;
	int result = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		count += !LLVMIsDeclaration(f);
	list = calloc(count + 1, sizeof(*list));
	if (!list)
		return fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			list[at++].function = f;
	order_by_calls(list, count);
	while (at-- && !result) { /* callers before callees */
		struct candidate *c = &list[at];
		uint64_t copies = c->copies ? c->copies : 1; /* a probe */

		if (c->done && c->copies > 1 && c->size >= LEAST_SIZE &&
		    c->size * (c->copies - 1) >= LEAST_GAIN && takes_numbers(c->function)) {
			each_call(list, count, c->function, add_copies, &(uint64_t){ 1 });
			result = make_called(unit, c->function);
			continue;
		}
		each_call(list, count, c->function, add_copies, &copies);
	}
	free(list);
	return result;
}

static void replace_stand_in(struct fay_unit *unit, const char *name, unsigned parameter)
{
	LLVMValueRef g = LLVMGetNamedGlobal(unit->module, name);
	LLVMUseRef u;

	if (!g)
		return;
	while ((u = LLVMGetFirstUse(g)) != NULL) {
		LLVMValueRef call = LLVMGetUser(u);

		LLVMSetOperand(call, parameter,
			       LLVMGetParam(LLVMGetBasicBlockParent(LLVMGetInstructionParent(call)),
					    parameter));
	}
	LLVMDeleteGlobal(g);
}

void fay_settle_called(struct fay_unit *unit)
{
	replace_stand_in(unit, LOCAL_STAND_IN, 1);
	replace_stand_in(unit, GLOBAL_STAND_IN, 2);
}
