/* SPDX-License-Identifier: MIT */
/*
 * Calls through pointers to functions. A probe's read-only data hold no addresses, and an indirect
 * call could not be proved; but each function whose address is taken is known. Such an address
 * becomes a number, from 1 in the order of the module (0 is the null pointer), and a call through a
 * pointer becomes a switch over the numbers of the functions that have the call's type. Where the
 * pointer is a constant, as with a function that is passed to an inlined one, nothing remains of
 * the switch. A pointer that leads to no function of that type calls nothing; the call's value is
 * then zero.
 *
 * (Defunctionalization: Reynolds, "Definitional interpreters for higher-order programming
 * languages", ACM 1972.)
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "lower.h"

struct numbered {
	LLVMValueRef *functions; /* whose address is taken; number is the index + 1 */
	size_t count;
	struct dispatcher {
		LLVMTypeRef type; /* of the call */
		LLVMValueRef function;
	} *dispatchers;
	size_t dispatcher_count;
};

/* The call's pointer comes first, then its arguments. */
#define DISPATCHER "fay.call"

bool fay_is_dispatcher(const char *name)
{
	return name && !strncmp(name, DISPATCHER, strlen(DISPATCHER));
}

static bool calls_directly(LLVMUseRef use, LLVMValueRef function)
{
	LLVMValueRef user = LLVMGetUser(use);

	return LLVMIsACallInst(user) && LLVMGetCalledValue(user) == function &&
	       LLVMGetUsedValue(use) == function &&
	       LLVMGetOperandUse(user, (unsigned)LLVMGetNumOperands(user) - 1) == use;
}

static bool address_taken(const struct fay_unit *unit, LLVMValueRef function)
{
	if (fay_is_probe(unit, function))
		return false;
	for (LLVMUseRef u = LLVMGetFirstUse(function); u; u = LLVMGetNextUse(u))
		if (!calls_directly(u, function))
			return true;
	return false;
}

/* Puts `with` for `function` everywhere but where it is called by name. */
static int replace_address(LLVMValueRef function, LLVMValueRef with)
{
	size_t count = 0, at = 0;
	LLVMValueRef *calls;

	for (LLVMUseRef u = LLVMGetFirstUse(function); u; u = LLVMGetNextUse(u))
		count += calls_directly(u, function);
	calls = calloc(count + 1, sizeof(*calls));
	if (!calls)
		return -1;
	for (LLVMUseRef u = LLVMGetFirstUse(function); u; u = LLVMGetNextUse(u))
		if (calls_directly(u, function))
			calls[at++] = LLVMGetUser(u);
	LLVMReplaceAllUsesWith(function, with);
	for (size_t i = 0; i < count; i++)
		LLVMSetOperand(calls[i], (unsigned)LLVMGetNumOperands(calls[i]) - 1, function);
	free(calls);
	return 0;
}

static int number_functions(struct fay_unit *unit, struct numbered *n)
{
	LLVMTypeRef i64 = LLVMInt64TypeInContext(unit->context),
		    pointer = LLVMPointerTypeInContext(unit->context, 0);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
		LLVMValueRef *grown;

		if (LLVMIsDeclaration(f) || !address_taken(unit, f))
			continue;
		grown = realloc(n->functions, (n->count + 1) * sizeof(*grown));
		if (!grown)
			return -1;
		n->functions = grown;
		n->functions[n->count++] = f;
		if (replace_address(f, LLVMConstIntToPtr(LLVMConstInt(i64, n->count, 0), pointer)))
			return -1;
	}
	return 0;
}

/* Attributes that are part of how arguments are passed, from parameter `from` of a call or function
 * to parameter `to` of another. */
static void copy_attributes(LLVMValueRef source, unsigned from, LLVMValueRef target, unsigned to)
{
	LLVMAttributeRef list[32];
	bool call = LLVMIsACallInst(source) != NULL;
	unsigned count = call ? LLVMGetCallSiteAttributeCount(source, from)
			      : LLVMGetAttributeCountAtIndex(source, from);

	if (count > sizeof(list) / sizeof(*list))
		return;
	if (call)
		LLVMGetCallSiteAttributes(source, from, list);
	else
		LLVMGetAttributesAtIndex(source, from, list);
	for (unsigned i = 0; i < count; i++) {
		if (LLVMIsACallInst(target))
			LLVMAddCallSiteAttribute(target, to, list[i]);
		else
			LLVMAddAttributeAtIndex(target, to, list[i]);
	}
}

static void add_case(LLVMBuilderRef b, LLVMValueRef dispatcher, LLVMValueRef choice,
		     LLVMTypeRef type, LLVMValueRef callee, uint64_t number)
{
	LLVMContextRef context = LLVMGetTypeContext(type);
	unsigned count = LLVMCountParamTypes(type);
	LLVMValueRef arguments[256], call;
	LLVMBasicBlockRef block = LLVMAppendBasicBlockInContext(context, dispatcher, "");

	for (unsigned i = 0; i < count; i++)
		arguments[i] = LLVMGetParam(dispatcher, i + 1);
	LLVMAddCase(choice, LLVMConstInt(LLVMInt64TypeInContext(context), number, 0), block);
	LLVMPositionBuilderAtEnd(b, block);
	call = LLVMBuildCall2(b, type, callee, arguments, count, "");
	for (unsigned i = 0; i <= count; i++)
		copy_attributes(callee, i, call, i);
	if (LLVMGetTypeKind(LLVMGetReturnType(type)) == LLVMVoidTypeKind)
		LLVMBuildRetVoid(b);
	else
		LLVMBuildRet(b, call);
}

/* `call` shows how arguments of this type of function are passed. */
static LLVMValueRef make_dispatcher(struct fay_unit *unit, const struct numbered *n,
				    LLVMTypeRef type, LLVMValueRef call)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);
	unsigned count = LLVMCountParamTypes(type);
	LLVMTypeRef parameters[257] = { LLVMPointerTypeInContext(unit->context, 0) },
		    result = LLVMGetReturnType(type);
	LLVMValueRef dispatcher, choice;
	LLVMBasicBlockRef entry, none;

	LLVMGetParamTypes(type, parameters + 1);
	dispatcher = LLVMAddFunction(unit->module, DISPATCHER,
				     LLVMFunctionType(result, parameters, count + 1, 0));
	for (unsigned i = 0; i < count; i++)
		copy_attributes(call, i + 1, dispatcher, i + 2);
	entry = LLVMAppendBasicBlockInContext(unit->context, dispatcher, "");
	none = LLVMAppendBasicBlockInContext(unit->context, dispatcher, "");
	LLVMPositionBuilderAtEnd(b, none);
	if (LLVMGetTypeKind(result) == LLVMVoidTypeKind)
		LLVMBuildRetVoid(b);
	else
		LLVMBuildRet(b, LLVMConstNull(result));
	LLVMPositionBuilderAtEnd(b, entry);
	choice = LLVMBuildSwitch(b,
				 LLVMBuildPtrToInt(b, LLVMGetParam(dispatcher, 0),
						   LLVMInt64TypeInContext(unit->context), ""),
				 none, (unsigned)n->count);
	for (size_t i = 0; i < n->count; i++)
		if (LLVMGlobalGetValueType(n->functions[i]) == type)
			add_case(b, dispatcher, choice, type, n->functions[i], i + 1);
	LLVMDisposeBuilder(b);
	return dispatcher;
}

static bool called_by_pointer(const struct numbered *n, LLVMTypeRef type)
{
	for (size_t i = 0; i < n->count; i++)
		if (LLVMGlobalGetValueType(n->functions[i]) == type)
			return true;
	return false;
}

static LLVMValueRef dispatcher_for(struct fay_unit *unit, struct numbered *n, LLVMTypeRef type,
				   LLVMValueRef call)
{
	struct dispatcher *grown;

	for (size_t i = 0; i < n->dispatcher_count; i++)
		if (n->dispatchers[i].type == type)
			return n->dispatchers[i].function;
	grown = realloc(n->dispatchers, (n->dispatcher_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	n->dispatchers = grown;
	grown[n->dispatcher_count++] =
		(struct dispatcher){ type, make_dispatcher(unit, n, type, call) };
	return grown[n->dispatcher_count - 1].function;
}

static int lower_call(struct fay_unit *unit, struct numbered *n, LLVMValueRef call)
{
	LLVMTypeRef type = LLVMGetCalledFunctionType(call);
	unsigned count = LLVMGetNumArgOperands(call);
	LLVMValueRef arguments[257], made, dispatcher;
	LLVMBuilderRef b;

	if (LLVMIsFunctionVarArg(type) || count > 255 || !called_by_pointer(n, type))
		return fay_refuse_at(unit, call,
				     "call through a pointer that no function of this file fits; "
				     "point to functions of exactly this type, "
				     "or use `switch`");
	dispatcher = dispatcher_for(unit, n, type, call);
	if (!dispatcher)
		return fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
	arguments[0] = LLVMGetCalledValue(call);
	for (unsigned i = 0; i < count; i++)
		arguments[i + 1] = LLVMGetOperand(call, i);
	b = LLVMCreateBuilderInContext(unit->context);
	LLVMPositionBuilderBefore(b, call);
	made = LLVMBuildCall2(b, LLVMGlobalGetValueType(dispatcher), dispatcher, arguments,
			      count + 1, "");
	LLVMDisposeBuilder(b);
	LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(call));
	for (unsigned i = 0; i < count; i++)
		copy_attributes(call, i + 1, made, i + 2);
	LLVMReplaceAllUsesWith(call, made);
	LLVMInstructionEraseFromParent(call);
	return 0;
}

int fay_lower_pointer_calls(struct fay_unit *unit)
{
	struct numbered n = { 0 };
	int result = number_functions(unit, &n)
			     ? fay_error_set(unit->error, FAY_E_LIMIT, "out of memory")
			     : 0;

	for (LLVMValueRef i = fay_first_of_module(unit->module), next; i && !result; i = next) {
		next = fay_next_of_module(i);
		if (LLVMIsACallInst(i) && !LLVMIsAInlineAsm(LLVMGetCalledValue(i)) &&
		    !fay_callee(i))
			result = lower_call(unit, &n, i);
	}
	free(n.functions);
	free(n.dispatchers);
	return result;
}
