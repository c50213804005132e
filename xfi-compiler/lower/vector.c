/* SPDX-License-Identifier: MIT */
/*
 * Floating point and vectors. A probe without them gets general registers only, since saving vector
 * registers is the larger part of a small probe's cost. One that has them gets SSE2, and with
 * -march= whatever that architecture has; then LLVM's vectorisers run, too.
 *
 * Off in every case, because no verifier admits them or a proof would get lost: x87, MMX, BMI and
 * movbe, masked moves, gathers. vzeroupper is off because it would make the dispatcher save all
 * sixteen registers; the dispatcher restores the upper halves anyway.
 *
 * What stays undefined in LLVM is defined here: a conversion of a number that does not fit gives
 * whatever the instruction gives (freeze).
 */
#include <string.h>

#include <llvm-c/Core.h>

#include "lower.h"

struct architecture {
	const char *name, *cpu, *features;
	bool vectors, wide; /* wide: SSE4.1's rounding and more */
};
#define ALWAYS_OFF                                                                                 \
	"-x87,-mmx,-idivl-to-divb,-idivq-to-divl,-bmi,-bmi2,-movbe,-lzcnt,-f16c,-vzeroupper"

static const struct architecture architectures[] = {
	{ "general", "x86-64", "-sse,-sse2,-avx," ALWAYS_OFF, false, false },
	{ "x86-64", "x86-64", ALWAYS_OFF, true, false },
	{ "x86-64-v2", "x86-64-v2", ALWAYS_OFF, true, true },
	{ "x86-64-v3", "x86-64-v3", ALWAYS_OFF, true, true },
};

static const struct architecture *find(const char *name)
{
	for (size_t i = 0; i < sizeof(architectures) / sizeof(*architectures); i++)
		if (!strcmp(name, architectures[i].name))
			return &architectures[i];
	return NULL;
}

static bool is_vector_type(LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMFloatTypeKind:
	case LLVMDoubleTypeKind:
	case LLVMVectorTypeKind: return true;
	default: return false;
	}
}

static bool has_vectors(LLVMModuleRef module)
{
	for (LLVMValueRef i = fay_first_of_module(module); i; i = fay_next_of_module(i)) {
		if (is_vector_type(LLVMTypeOf(i)))
			return true;
		for (int o = 0; o < LLVMGetNumOperands(i); o++)
			if (is_vector_type(LLVMTypeOf(LLVMGetOperand(i, o))))
				return true;
	}
	return false;
}

int fay_vectors_choose(struct fay_unit *unit, const char *march, const char **cpu,
		       const char **features)
{
	const struct architecture *a = find(march                       ? march
					    : has_vectors(unit->module) ? "x86-64"
									: "general");

	if (!a)
		return fay_error_set(
			unit->error, FAY_E_USAGE,
			"-march=%s is not known; general, x86-64, x86-64-v2 and x86-64-v3 are",
			march);
	unit->vectors = a->vectors;
	unit->rounding = a->wide;
	unit->vectorise = march && a->vectors;
	*cpu = a->cpu;
	*features = a->features;
	return 0;
}

bool fay_vectors_intrinsic(const struct fay_unit *unit, const char *name)
{
	static const char *const plain[] = { "fabs.",       "sqrt.",          "copysign.",
					     "minnum.",     "maxnum.",        "fptosi.sat.",
					     "fptoui.sat.", "vector.reduce.", "is.fpclass.",
					     "x86.sse",     "x86.ssse3.",     "x86.avx",
					     "masked." };
	static const char *const rounding[] = { "floor.", "ceil.",      "trunc.",
						"rint.",  "nearbyint.", "roundeven." };

	if (!unit->vectors)
		return false;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (!strncmp(name + 5, plain[i], strlen(plain[i])))
			return true;
	for (size_t i = 0; unit->rounding && i < sizeof(rounding) / sizeof(*rounding); i++)
		if (!strncmp(name + 5, rounding[i], strlen(rounding[i])))
			return true;
	return false;
}

void fay_define_conversion(LLVMBuilderRef b, LLVMValueRef i)
{
	LLVMValueRef frozen;

	LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(i));
	frozen = LLVMBuildFreeze(b, i, "");
	LLVMReplaceAllUsesWith(i, frozen);
	LLVMSetOperand(frozen, 0, i);
}

/* Own stack and constants keep the alignment that LLVM gave them. */
static bool alignment_is_ours(LLVMValueRef address)
{
	while (LLVMIsAGetElementPtrInst(address) ||
	       (LLVMIsAConstantExpr(address) && LLVMGetConstOpcode(address) == LLVMGetElementPtr))
		address = LLVMGetOperand(address, 0);
	return LLVMIsAAllocaInst(address) ||
	       (LLVMIsAGlobalVariable(address) && LLVMIsGlobalConstant(address));
}

void fay_clamp_alignment(struct fay_unit *unit)
{
	for (LLVMValueRef i = fay_first_of_module(unit->module); i; i = fay_next_of_module(i)) {
		bool load = LLVMIsALoadInst(i), store = LLVMIsAStoreInst(i);

		if ((load || store) && LLVMGetAlignment(i) > 8 &&
		    !alignment_is_ours(LLVMGetOperand(i, load ? 0 : 1)))
			LLVMSetAlignment(i, 8);
	}
}

static bool has_masked(LLVMModuleRef module)
{
	size_t length;

	for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
		if (!strncmp(LLVMGetValueName2(f, &length), "llvm.masked.", 12) &&
		    LLVMGetFirstUse(f))
			return true;
	return false;
}

/* The three regions are distinct memory; the vectorisers would otherwise compare their addresses at
 * run time, which no probe may. */
static void mark_distinct(struct fay_unit *unit)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("noalias", 7);

	for (uint32_t i = 0; i < unit->spec->probe_count; i++) {
		LLVMValueRef f = LLVMGetNamedFunction(unit->module, unit->spec->probes[i].symbol);

		for (unsigned p = 1; f && p <= 3; p++)
			LLVMAddAttributeAtIndex(f, p,
						LLVMCreateEnumAttribute(unit->context, kind, 0));
	}
}

int fay_vectorise(struct fay_unit *unit, int (*run_passes)(struct fay_unit *, const char *))
{
	LLVMModuleRef plain;
	int result;

	if (!unit->vectorise)
		return 0;
	mark_distinct(unit);
	plain = LLVMCloneModule(unit->module);
	result = run_passes(unit, "function(loop-simplify,lcssa,loop-rotate,loop-vectorize,slp-"
				  "vectorizer,instcombine<no-verify-fixpoint>,simplifycfg,adce)");
	if (!result && has_masked(unit->module)) { /* masked moves are vmaskmov on AVX */
		/* the caller disposes of the other: names of probes lie in it */
		unit->module = plain;
		return result;
	}
	LLVMDisposeModule(plain);
	return result;
}
