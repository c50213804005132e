/* SPDX-License-Identifier: MIT */
/*
 * What no probe can have, found early, so that the author reads a source line and what to write
 * instead, and not a verifier's rule about machine code. Twice: the module as it comes in
 * (whole-program facts: recursion, globals, foreign functions) and after inlining (what is left in
 * the probes themselves). The list is about what cannot be compiled; whether the result is safe is
 * the verifier's business alone.
 */
#include <stdlib.h>
#include <string.h>

#include "fay/event.h"
#include "lower.h"

/* Intrinsics that become plain instructions, or nothing. Prefixes of the name after "llvm.". */
static const char *const intrinsics[] = {
	"lifetime.",   "dbg.",
	"umin.",       "umax.",
	"smin.",       "smax.",
	"abs.",        "ctlz.",
	"cttz.",       "ctpop.",
	"bswap.",      "fshl.",
	"fshr.",       "memcpy.",
	"memmove.",    "memset.",
	"uadd.",       "usub.",
	"sadd.",       "ssub.",
	"umul.",       "smul.",
	"expect.",     "assume",
	"bitreverse.", "experimental.noalias.scope.decl",
	"ucmp.",       "scmp.",
};

static bool intrinsic_known(const char *name)
{
	for (size_t i = 0; i < sizeof(intrinsics) / sizeof(*intrinsics); i++)
		if (!strncmp(name + 5, intrinsics[i], strlen(intrinsics[i])))
			return true;
	return false;
}

/* What to write instead of a function that people miss. */
static const char *instead_of(const char *name)
{
	static const struct {
		const char *names, *advice;
	} known[] = {
		{ " malloc calloc realloc free aligned_alloc strdup ",
		  "a probe has no heap: use FAY_SCRATCH() for memory that lasts, or an array of "
		  "constant size" },
		{ " printf fprintf puts putchar fputs write ",
		  "a probe prints nothing: declare a FAY_STREAM() and emit a row" },
		{ " setjmp _setjmp __sigsetjmp sigsetjmp longjmp siglongjmp ",
		  "a probe cannot jump between functions: use `return`, or `goto` within one" },
		{ " strlen strnlen strcmp strncmp strstr strchr strcpy strncpy ",
		  "use the bounded fay_string_*() of <fay/string.h>" },
		{ " abort exit _exit __assert_fail ",
		  "a probe cannot end the program: use `return` to leave the probe" },
		{ " time clock_gettime gettimeofday getpid gettid ",
		  "the event has time, cycles, pid, tid and cpu" },
		{ " pthread_mutex_lock pthread_mutex_unlock ",
		  "a probe never waits: use __atomic_*() on FAY_SHARED_SCRATCH(), or state, of "
		  "which each thread has its own" },
	};
	char wanted[128];

	snprintf(wanted, sizeof(wanted), " %s ", name);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strstr(known[i].names, wanted))
			return known[i].advice;
	return "a probe can call its own functions and the helpers fay_flush, fay_emit and "
	       "fay_try_read";
}

static int check_call(struct fay_unit *unit, LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	const char *name = fay_callee(call);

	if (LLVMIsAInlineAsm(callee))
		return fay_refuse_at(
			unit, call,
			"inline assembly is not possible in a probe; write it in C, or build the "
			"whole image in assembly (docs/probe-image.md)");
	if (!LLVMIsDeclaration(callee) || fay_is_helper(name) || fay_is_compare(name))
		return 0;
	if (unit->object_count &&
	    (!strcmp(name, "fay_object_flush") || !strcmp(name, "fay_object_emit")))
		return 0; /* objects.c */
	if (!strncmp(name, "llvm.", 5)) {
		if (intrinsic_known(name) || fay_vectors_intrinsic(unit, name))
			return 0;
		if (!strncmp(name, "llvm.stack", 10))
			return fay_refuse_at(unit, call,
					     "variable-length array or alloca(); give the array a "
					     "constant size");
		if (!strncmp(name, "llvm.eh.", 8) || !strncmp(name, "llvm.frameaddress", 17))
			return fay_refuse_at(unit, call,
					     "a probe cannot jump between functions: use `return`, "
					     "or `goto` within one");
		if (!strncmp(name, "llvm.va_", 8))
			return fay_refuse_at(unit, call,
					     "variable arguments; pass an array and a count");
		if (!strncmp(name, "llvm.threadlocal", 16))
			return fay_refuse_at(
				unit, call,
				"a thread-local variable; state is one copy per thread already");
		if (!strncmp(name, "llvm.trap", 9) || !strncmp(name, "llvm.debugtrap", 14))
			return fay_refuse_at(unit, call,
					     "a probe cannot trap; use `return` to leave it");
		return fay_refuse_at(unit, call, "%s is not available in a probe", name);
	}
	return fay_refuse_at(unit, call, "call of %s, which this file does not define; %s", name,
			     instead_of(name));
}

/* Depth-first over direct calls; colour 1 on the path, 2 done. Iterative depth is bounded by the
 * number of functions. */
struct colour {
	LLVMValueRef function;
	int colour;
};

static struct colour *colour_of(struct colour *colours, size_t count, LLVMValueRef function)
{
	for (size_t i = 0; i < count; i++)
		if (colours[i].function == function)
			return &colours[i];
	return NULL;
}

/* The recursion goes through a call by pointer, which is the author's line. */
#define RECURSION_BELOW (-1000)

static int check_recursion(struct fay_unit *unit, struct colour *colours, size_t count,
			   struct colour *at)
{
	size_t length;
	bool dispatcher = fay_is_dispatcher(LLVMGetValueName2(at->function, &length));

	at->colour = 1;
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(at->function); b;
	     b = LLVMGetNextBasicBlock(b)) {
		for (LLVMValueRef i = LLVMGetFirstInstruction(b); i;
		     i = LLVMGetNextInstruction(i)) {
			struct colour *next;
			int result;

			if (!LLVMIsACallInst(i))
				continue;
			next = colour_of(colours, count, LLVMGetCalledValue(i));
			if (!next || next->colour == 2)
				continue;
			if (next->colour == 1 && dispatcher)
				return RECURSION_BELOW;
			result = next->colour == 1 ? RECURSION_BELOW
						   : check_recursion(unit, colours, count, next);
			if (result == RECURSION_BELOW)
				return fay_refuse_at(
					unit, i,
					"recursion through %s; write a loop with a constant bound",
					fay_is_dispatcher(fay_callee(i))
						? "a pointer to a function"
						: fay_source_name(LLVMGetCalledValue(i)));
			if (result)
				return result;
		}
	}
	at->colour = 2;
	return 0;
}

static int check_type(struct fay_unit *unit, LLVMValueRef instruction, LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMHalfTypeKind:
	case LLVMBFloatTypeKind:
	case LLVMX86_FP80TypeKind:
	case LLVMFP128TypeKind:
	case LLVMPPC_FP128TypeKind:
		return fay_refuse_at(unit, instruction,
				     "this floating-point type is not available in a probe (long "
				     "double is x87); use float or double");
	case LLVMFloatTypeKind:
	case LLVMDoubleTypeKind:
		return unit->vectors ? 0
				     : fay_refuse_at(unit, instruction,
						     "floating point needs vector registers; "
						     "compile without -march=general, "
						     "or use scaled integers");
	case LLVMVectorTypeKind:
		return unit->vectors ? 0
				     : fay_refuse_at(unit, instruction,
						     "vectors need vector registers; compile "
						     "without -march=general, or use a "
						     "loop over integers");
	case LLVMScalableVectorTypeKind:
		return fay_refuse_at(unit, instruction,
				     "vectors of unknown length are not available");
	case LLVMIntegerTypeKind:
		if (LLVMGetIntTypeWidth(type) > 128)
			return fay_refuse_at(unit, instruction, "an integer of more than 128 bits");
		return 0;
	default: return 0;
	}
}

static int check_functions(struct fay_unit *unit)
{
	size_t count = 0;
	struct colour *colours;
	int result = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
		if (LLVMIsDeclaration(f))
			continue;
		count++;
		if (LLVMIsFunctionVarArg(LLVMGlobalGetValueType(f)))
			return fay_refuse_at(unit, f,
					     "%s has variable arguments, which a probe cannot "
					     "have; pass an array and a count",
					     fay_source_name(f));
		for (LLVMValueRef i = fay_first_of_function(f); i && !result;
		     i = fay_next_of_function(i)) {
			if (LLVMIsACallInst(i))
				result = check_call(unit, i);
			else if (LLVMGetInstructionOpcode(i) == LLVMIndirectBr)
				result = fay_refuse_at(unit, i, "computed goto; use `switch`");
			if (!result)
				result = check_type(unit, i, LLVMTypeOf(i));
		}
		if (result)
			return result;
	}
	colours = calloc(count + 1, sizeof(*colours));
	if (!colours)
		return fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
	count = 0;
	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			colours[count++].function = f;
	for (size_t i = 0; i < count && !result; i++)
		if (!colours[i].colour)
			result = check_recursion(unit, colours, count, &colours[i]);
	free(colours);
	return result;
}

static bool is_object(const struct fay_unit *unit, LLVMValueRef global)
{
	for (unsigned i = 0; i < unit->object_count; i++)
		if (unit->objects[i].global == global)
			return true;
	return false;
}

static int check_globals(struct fay_unit *unit)
{
	size_t length;

	for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
		const char *name = LLVMGetValueName2(g, &length);

		if (is_object(unit, g) || !LLVMGetFirstUse(g) || !strncmp(name, "llvm.", 5))
			continue;
		if (LLVMIsThreadLocal(g))
			return fay_refuse_at(
				unit, g,
				"%s is thread-local; state declared with FAY_COUNT, FAY_CELL "
				"and the like is one copy per thread already",
				name);
		if (LLVMIsDeclaration(g))
			return fay_refuse_at(
				unit, g,
				"%s is not defined in this file; a probe sees only its "
				"event, its state and its own constants",
				name);
		if (!LLVMIsGlobalConstant(g))
			return fay_refuse_at(
				unit, g,
				"%s is a writable global variable; declare it as state "
				"(FAY_SCRATCH, FAY_CELL, FAY_COUNT, FAY_TABLE ...) or make it "
				"const",
				fay_source_name(g));
	}
	if (LLVMGetModuleInlineAsm(unit->module, &length) && length)
		return fay_error_at_text(
			unit->error, unit->module, "asm",
			"assembly outside functions is not possible in a probe; write it in C, "
			"or build the whole image in assembly (docs/probe-image.md)");
	for (uint32_t i = 0; i < unit->spec->probe_count; i++) {
		const char *symbol = unit->spec->probes[i].symbol;
		LLVMValueRef f = LLVMGetNamedFunction(unit->module, symbol);

		if (!f || LLVMIsDeclaration(f))
			return fay_error_set(unit->error, FAY_E_INTERNAL,
					     "probe function %s is not in the module", symbol);
		if (LLVMCountParams(f) != 3 ||
		    LLVMGetTypeKind(LLVMGetReturnType(LLVMGlobalGetValueType(f))) !=
			    LLVMVoidTypeKind)
			return fay_refuse_at(unit, f,
					     "probe function %s is not void (event, local, global)",
					     symbol);
		for (LLVMUseRef u = LLVMGetFirstUse(f); u; u = LLVMGetNextUse(u))
			if (LLVMIsACallInst(LLVMGetUser(u)))
				return fay_refuse_at(
					unit, LLVMGetUser(u),
					"call of the probe %s; move the shared code to a function "
					"of its own",
					symbol);
	}
	return 0;
}

int fay_check_module(struct fay_unit *unit)
{
	int result = check_globals(unit);

	return result ? result : check_functions(unit);
}

static int check_atomic(struct fay_unit *unit, LLVMValueRef i)
{
	LLVMAtomicRMWBinOp op = LLVMGetAtomicRMWBinOp(i);
	bool used = LLVMGetFirstUse(i) != NULL;

	if (op == LLVMAtomicRMWBinOpAdd || op == LLVMAtomicRMWBinOpSub)
		return 0;
	if (!used && (op == LLVMAtomicRMWBinOpAnd || op == LLVMAtomicRMWBinOpOr ||
		      op == LLVMAtomicRMWBinOpXor))
		return 0;
	return fay_refuse_at(unit, i,
			     "this atomic operation has no single instruction; use atomic add, or "
			     "a bounded loop of "
			     "__atomic_compare_exchange_n");
}

static int check_instruction(struct fay_unit *unit, LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(i);
	int result = check_type(unit, i, type);

	for (int o = 0; o < LLVMGetNumOperands(i) && !result; o++)
		if (LLVMIsAConstant(LLVMGetOperand(i, o)) ||
		    LLVMIsAInstruction(LLVMGetOperand(i, o)))
			result = check_type(unit, i, LLVMTypeOf(LLVMGetOperand(i, o)));
	if (result)
		return result;
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMFRem:
		return fay_refuse_at(unit, i,
				     "the remainder of a floating-point division (fmod) is not an "
				     "instruction; subtract a multiple instead");
	case LLVMUDiv:
	case LLVMURem:
	case LLVMSDiv:
	case LLVMSRem:
		if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
			return fay_refuse_at(unit, i,
					     "division of integer vectors is not an instruction; "
					     "divide the elements");
		if (LLVMGetIntTypeWidth(type) > 64)
			return fay_refuse_at(unit, i, "division of integers of more than 64 bits");
		return 0;
	case LLVMAlloca:
		if (!LLVMIsAConstantInt(LLVMGetOperand(i, 0)) ||
		    LLVMGetInstructionParent(i) != LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(
							   LLVMGetInstructionParent(i))))
			return fay_refuse_at(unit, i,
					     "variable-length array or alloca(); give the array a "
					     "constant size");
		if (LLVMGetAlignment(i) > 16)
			LLVMSetAlignment(i, 16);
		return 0;
	case LLVMCall: return check_call(unit, i);
	case LLVMAtomicRMW: return check_atomic(unit, i);
	case LLVMFence:
		if (LLVMGetOrdering(i) == LLVMAtomicOrderingSequentiallyConsistent)
			return fay_refuse_at(
				unit, i,
				"a full memory barrier; acquire and release fences are available");
		return 0;
	case LLVMStore:
		if (LLVMGetOrdering(i) == LLVMAtomicOrderingSequentiallyConsistent)
			return fay_refuse_at(
				unit, i, "a sequentially consistent store; use __ATOMIC_RELEASE");
		return 0;
	case LLVMInvoke:
	case LLVMResume:
	case LLVMLandingPad:
	case LLVMCallBr:
	case LLVMVAArg:
	case LLVMIndirectBr:
	case LLVMCatchPad:
	case LLVMCleanupPad:
		return fay_refuse_at(unit, i,
				     "exceptions, variable arguments and computed jumps are not "
				     "available in a probe");
	default: return 0;
	}
}

/* --- fields that the probe's kind does not have
 * --------------------------------------------------------------------------- */

#define KIND(name) (1u << FAY_PROBE_##name)
#define CALLS (KIND(ENTRY) | KIND(RETURN) | KIND(EXCEPTION))
#define OF(member) offsetof(struct fay_event, member)
#define ONLY_THERE "other registers are known in FAY_OFFSET() and FAY_MARKER() only"
static const struct {
	size_t start, end; /* bytes of the event */
	uint32_t kinds;
	const char *message;
} fields[] = {
	{ OF(arg), OF(retval), CALLS | KIND(OFFSET) | KIND(MARKER),
	  "arguments are known in probes of functions and markers only" },
	{ OF(retval), OF(time), KIND(RETURN), "a return value is known in FAY_RETURN() only" },
	{ OF(retval2), OF(retval_float), KIND(RETURN) | KIND(ENTRY),
	  "a return value is known in FAY_RETURN() only, event->frame_pointer in FAY_ENTRY() "
	  "only" },
	{ OF(retval_float), OF(reg), KIND(RETURN), "a return value is known in FAY_RETURN() only" },
	{ OF(duration), OF(address), KIND(RETURN) | KIND(EXCEPTION),
	  "a call's duration is known in FAY_RETURN() and FAY_EXCEPTION() only" },
	{ OF(reg[4]), OF(reg[6]), KIND(RETURN) | KIND(OFFSET) | KIND(MARKER),
	  "rsp and rbp are known in FAY_RETURN(), FAY_OFFSET() and FAY_MARKER() only" },
	{ OF(reg), OF(reg[4]), KIND(OFFSET) | KIND(MARKER), ONLY_THERE },
	{ OF(reg[6]), OF(flags), KIND(OFFSET) | KIND(MARKER), ONLY_THERE },
	{ OF(flags), sizeof(struct fay_event), CALLS | KIND(OFFSET) | KIND(MARKER),
	  "a caller, or flags, are known in probes of functions and markers only" },
};

static int check_field(struct fay_unit *unit, uint32_t kind, LLVMValueRef event, LLVMValueRef load)
{
	struct fay_address address;

	if (!fay_trace(unit, LLVMGetOperand(load, 0), &address) || address.base != event ||
	    address.terms || address.constant < 0)
		/* by a variable index: the dispatcher refuses what the verifier finds to be read */
		return 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if ((size_t)address.constant >= fields[i].start &&
		    (size_t)address.constant < fields[i].end && !(fields[i].kinds >> kind & 1))
			return fay_refuse_at(unit, load, "%s", fields[i].message);
	return 0;
}

/* Of sources that declare their probes: what a query's probe finds in an event is the query's
 * business. */
static int check_fields(struct fay_unit *unit, const struct fay_spec_probe *probe)
{
	LLVMValueRef f = LLVMGetNamedFunction(unit->module, probe->symbol);

	for (LLVMValueRef i = fay_first_of_function(f); i; i = fay_next_of_function(i)) {
		int result = LLVMIsALoadInst(i)
				     ? check_field(unit, probe->kind, LLVMGetParam(f, 0), i)
				     : 0;

		if (result)
			return result;
	}
	return 0;
}

int fay_check_simplified(struct fay_unit *unit)
{
	for (LLVMValueRef i = fay_first_of_module(unit->module); i; i = fay_next_of_module(i)) {
		int result = check_instruction(unit, i);

		if (result)
			return result;
	}
	for (uint32_t i = 0; i < unit->spec->probe_count && unit->object_count; i++) {
		int result = check_fields(unit, &unit->spec->probes[i]);

		if (result)
			return result;
	}
	return 0;
}
