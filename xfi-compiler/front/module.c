/* SPDX-License-Identifier: MIT */
/*
 * The order of things: a module becomes an image.
 *
 *   point       calls through pointers become switches
 *   check       what no probe can have
 *   define      overflow, shifts, divisions: nothing is undefined
 *   inline      everything into the probes, so that a guard sees where a pointer comes from; large
 *		 functions of numbers are called
 *   simplify    registers instead of memory, dead code out, branches threaded
 *   guard       each access inside its region; each loop ends
 *   lower       state objects to LOCAL and GLOBAL
 *   optimise    -O2's scalar passes
 *   vectorise   if asked for (vector.c)
 *   generate    machine code
 *   link, write the image
 *
 * The passes are chosen by hand, not "default<O2>": the passes that rewrite a loop's counter into a
 * form that is harder to prove (strength reduction, exit test replacement) buy nothing in code of
 * this size.
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "front_private.h"
#include "xfi-compiler/guards/guards.h"
#include "xfi-compiler/link/link.h"
#include "xfi-compiler/lower/lower.h"

#define COMBINE "instcombine<no-verify-fixpoint>"
#define SIMPLIFY                                                                                   \
	"always-inline,globaldce,function(sroa,early-cse<memssa>,simplifycfg," COMBINE             \
	",simplifycfg,"                                                                            \
	"loop-simplify,lcssa,loop(loop-rotate,loop-unroll-full),sroa,early-cse<memssa>,"           \
	"simplifycfg," COMBINE ","                                                                 \
	"jump-threading,correlated-propagation,simplifycfg," COMBINE                               \
	",gvn,jump-threading,simplifycfg," COMBINE ","                                             \
	"loop-simplify,lcssa,loop(loop-unroll-full),simplifycfg," COMBINE                          \
	",early-cse<memssa>,dse,adce,loop-simplify)"
/* After memory.c: its word loops are functions. */
#define REFINE                                                                                     \
	"always-inline,globaldce,function(sroa,early-cse<memssa>," COMBINE                         \
	",simplifycfg,loop-simplify,lcssa,loop(loop-deletion),simplifycfg)"
#define OPTIMISE                                                                                   \
	"always-inline,globaldce,function(sroa,early-cse<memssa>,simplifycfg," COMBINE             \
	",loop-simplify,lcssa,"                                                                    \
	"loop-mssa(licm),gvn,sccp," COMBINE ",dse,adce,reassociate,early-cse,simplifycfg," COMBINE \
	",loop-simplify,lcssa,loop-mssa(licm),adce),"                                              \
	"globaldce,constmerge"

void fay_buffer_deinit(struct fay_buffer *buffer)
{
	free(buffer->data);
	fay_buffer_init(buffer);
}

static LLVMAttributeRef enum_attribute(struct fay_unit *unit, const char *name, uint64_t value)
{
	return LLVMCreateEnumAttribute(unit->context,
				       LLVMGetEnumAttributeKindForName(name, strlen(name)), value);
}

static void set_flag(LLVMValueRef function, struct fay_unit *unit, const char *name)
{
	LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
				enum_attribute(unit, name, 0));
}

static void set_text(LLVMValueRef function, struct fay_unit *unit, const char *name,
		     const char *value)
{
	LLVMAddAttributeAtIndex(
		function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
		LLVMCreateStringAttribute(unit->context, name, strlen(name), value, strlen(value)));
}

static void clear_flag(LLVMValueRef function, const char *name)
{
	LLVMRemoveEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
				       LLVMGetEnumAttributeKindForName(name, strlen(name)));
}

static void clear_text(LLVMValueRef function, const char *name)
{
	LLVMRemoveStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
					 name, strlen(name));
}

/* Attributes by which the code generator keeps to what can be verified; what the front end said is
 * dropped. */
static void set_attributes(struct fay_unit *unit, LLVMValueRef function)
{
	static const char *const drop_flags[] = { "noinline",     "optnone", "sspstrong",
						  "ssp",          "sspreq",  "uwtable",
						  "alwaysinline", "minsize", "optsize",
						  "nocf_check" };
	static const char *const drop_texts[] = { "target-features", "target-cpu",
						  "tune-cpu",        "stack-protector-buffer-size",
						  "frame-pointer",   "probe-stack",
						  "stackrealign",    "patchable-function" };
	bool probe = fay_is_probe(unit, function);

	for (size_t i = 0; i < sizeof(drop_flags) / sizeof(*drop_flags); i++)
		clear_flag(function, drop_flags[i]);
	for (size_t i = 0; i < sizeof(drop_texts) / sizeof(*drop_texts); i++)
		clear_text(function, drop_texts[i]);
	set_flag(function, unit, "nounwind");
	set_flag(function, unit, "noredzone");
	set_text(function, unit, "no-builtins", "");
	set_text(function, unit, "no-jump-tables", "true");
	set_text(function, unit, "disable-tail-calls", "true");
	set_text(function, unit, "frame-pointer", "none");
	/* rsp stays a constant distance from its value at entry */
	set_text(function, unit, "no-realign-stack", "");
	/* Frames are whole words, or what vectors need, also where nothing lies on the stack but a
	 * byte. */
	LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
				enum_attribute(unit, "alignstack", unit->vectors ? 16 : 8));
	/* nothing that the probe writes is part of the event */
	if (probe && LLVMCountParams(function) > 0)
		LLVMAddAttributeAtIndex(function, 1, enum_attribute(unit, "noalias", 0));
	LLVMSetSection(function, NULL);
	LLVMSetLinkage(function, probe ? LLVMExternalLinkage : LLVMInternalLinkage);
	if (!probe)
		set_flag(function, unit, fay_is_called(function) ? "noinline" : "alwaysinline");
}

/* Helpers are declared anew, so that nothing the front end assumed (same module, weak, lazily
 * bound) stays. */
static void redeclare_helper(struct fay_unit *unit, LLVMValueRef old)
{
	size_t length;
	char name[64];
	LLVMValueRef function;

	snprintf(name, sizeof(name), "%s", LLVMGetValueName2(old, &length));
	LLVMSetValueName2(old, "", 0);
	function = LLVMAddFunction(unit->module, name, LLVMGlobalGetValueType(old));
	set_flag(function, unit, "nonlazybind");
	set_flag(function, unit, "nounwind");
	LLVMReplaceAllUsesWith(old, function);
	LLVMDeleteFunction(old);
	for (LLVMUseRef u = LLVMGetFirstUse(function); u; u = LLVMGetNextUse(u))
		if (LLVMIsACallInst(LLVMGetUser(u)))
			LLVMSetTailCallKind(LLVMGetUser(u), LLVMTailCallKindNoTail);
}

static void redeclare_helpers(struct fay_unit *unit)
{
	for (unsigned i = 0; i < FAY_HELPERS; i++) {
		LLVMValueRef f = LLVMGetNamedFunction(unit->module, fay_helpers[i]);

		if (f && LLVMIsDeclaration(f))
			redeclare_helper(unit, f);
	}
}

static void prepare(struct fay_unit *unit)
{
	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			set_attributes(unit, f);
	for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
		if (LLVMIsDeclaration(g) || !LLVMIsGlobalConstant(g))
			continue;
		LLVMSetLinkage(g, LLVMInternalLinkage);
		LLVMSetSection(g, NULL);
	}
}

static int run_passes(struct fay_unit *unit, const char *passes)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error;
	int result = 0;

	LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
	LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
	error = LLVMRunPasses(unit->module, passes, unit->machine, options);
	if (error) {
		char *message = LLVMGetErrorMessage(error);

		result = fay_error_set(unit->error, FAY_E_INTERNAL, "optimiser: %s", message);
		LLVMDisposeErrorMessage(message);
	}
	LLVMDisposePassBuilderOptions(options);
	return result;
}

static int check_ir(struct fay_unit *unit, const char *after)
{
	char *message = NULL;
	int result = 0;

	if (LLVMVerifyModule(unit->module, LLVMReturnStatusAction, &message))
		result = fay_error_set(unit->error, FAY_E_INTERNAL,
				       "not well-formed IR %s: %.1500s", after, message);
	LLVMDisposeMessage(message);
	return result;
}

/* `unreachable` (after an endless loop, or where the optimiser saw undefined behaviour) must not
 * fall off the code. */
static void close_unreachable(struct fay_unit *unit)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(unit->context);

	for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k;
		     k = LLVMGetNextBasicBlock(k)) {
			LLVMValueRef t = LLVMGetBasicBlockTerminator(k);

			if (!t || LLVMGetInstructionOpcode(t) != LLVMUnreachable ||
			    !(fay_is_probe(unit, f) || fay_is_called(f)))
				continue;
			LLVMPositionBuilderBefore(b, t);
			fay_build_leave(b, f);
			LLVMInstructionEraseFromParent(t);
		}
	LLVMDisposeBuilder(b);
}

static int transform(struct fay_unit *unit, bool debug_lines)
{
	int result = check_ir(unit, "as given");

	if (!result)
		result = fay_lower_pointer_calls(unit);
	if (!result)
		result = fay_check_module(unit);
	if (!result)
		result = fay_keep_functions(unit);
	if (result)
		return result;
	prepare(unit);
	fay_define(unit);
	result = run_passes(unit, SIMPLIFY);
	fay_fill(unit);
	if (!result)
		result = fay_expand_memory(unit);
	if (!result)
		result = run_passes(unit, REFINE);
	if (!result)
		result = fay_expand_memory(unit);
	if (!result)
		result = run_passes(unit, "always-inline,globaldce");
	fay_settle_called(unit);
	if (!result)
		result = fay_lower_calls(unit);
	if (result)
		return result;
	close_unreachable(unit);
	redeclare_helpers(unit);
	if (!result)
		result = fay_check_simplified(unit);
	if (!result)
		result = fay_guard(unit);
	if (!result)
		result = fay_fuel(unit);
	if (!result)
		result = fay_lower_objects(unit);
	fay_clamp_alignment(unit);
	if (!result)
		result = check_ir(unit, "after the guards");
	if (debug_lines || unit->marks)
		fay_settle_lines(unit);
	else
		LLVMStripModuleDebugInfo(unit->module);
	if (!result)
		result = run_passes(unit, OPTIMISE);
	if (!result)
		result = fay_vectorise(unit, run_passes);
	if (!result)
		result = fay_expand_memory(unit);
	close_unreachable(unit);
	fay_split_loads(unit);
	fay_lower_bounds(unit);
	fay_shape(unit);
	if (!result)
		result = fay_initialise_arrays(unit);
	fay_make_plain(unit);
	fay_lower_checks(unit);
	fay_avoid_high_bytes(unit);
	fay_flush_keeping_registers(unit);
	if (!result && unit->confined)
		result = fay_call_through_slots(unit);
	return result;
}

static int generate(struct fay_unit *unit, const struct fay_compile_options *options,
		    struct fay_buffer *image)
{
	LLVMMemoryBufferRef object = NULL;
	struct fay_linked linked = { 0 };
	int result = fay_unit_object(unit, &object);

	if (result)
		return result;
	result = fay_link(LLVMGetBufferStart(object), LLVMGetBufferSize(object),
			  options && options->debug_lines, &linked, unit->error);
	if (!result)
		result = fay_write_image(unit->spec, &linked, image, unit->error);
	fay_linked_deinit(&linked);
	LLVMDisposeMemoryBuffer(object);
	return result;
}

static void print_report(const struct fay_compile_counts *c, size_t size)
{
	fprintf(stderr,
		"%u accesses: %u constant, %u in range by themselves, %u by an existing guard\n"
		"%u guards: %u masks, %u clamps, %u checks; %u of them outside the loop of their "
		"access\n"
		"%u loops end by themselves, %u of these shortened to the array's length; %u count "
		"their iterations\n"
		"%zu bytes\n",
		c->accesses, c->constant, c->in_range, c->merged, c->masks + c->clamps + c->checks,
		c->masks, c->clamps, c->checks, c->hoisted, c->bounded, c->shortened, c->fuels,
		size);
}

int fay_unit_compile(LLVMModuleRef module, const struct fay_image_spec *spec,
		     const struct fay_object *objects, unsigned object_count,
		     const struct fay_compile_options *options, unsigned report,
		     struct fay_buffer *image, struct fay_buffer *assembly, struct fay_error *error)
{
	struct fay_unit unit = {
		.module = module,
		.context = LLVMGetModuleContext(module),
		.spec = spec,
		.objects = objects,
		.object_count = object_count,
		.error = error,
		.report = report,
		.confined = options && options->confined,
		.unfuelled = options && options->unfuelled,
	};
	const char *cpu, *features;
	int result = fay_vectors_choose(&unit, options ? options->march : NULL, &cpu, &features);

	if (!result)
		result = fay_machine_create(&unit.machine, cpu, features, error);
	if (result)
		goto out;
	unit.layout = LLVMCreateTargetDataLayout(unit.machine);
	LLVMSetModuleDataLayout(module, unit.layout);
	LLVMSetTarget(module, "x86_64-unknown-linux-gnu");
	unit.marks = assembly != NULL;
	result = transform(&unit, options && options->debug_lines);
	if (!result && assembly)
		result = fay_unit_assembly(&unit, assembly);
	if (!result && assembly)
		result = fay_comment_lines(assembly, error);
	if (!result)
		result = generate(&unit, options, image);
	if (options && options->counts)
		*options->counts = unit.count;
	if (!result && report)
		print_report(&unit.count, image->size);
out:
	if (unit.layout)
		LLVMDisposeTargetData(unit.layout);
	if (unit.machine)
		LLVMDisposeTargetMachine(unit.machine);
	if (unit.module != module)
		LLVMDisposeModule(unit.module);
	LLVMDisposeModule(module);
	return result;
}

int fay_compile_module(LLVMModuleRef module, const struct fay_image_spec *spec,
		       const struct fay_compile_options *options, struct fay_buffer *image,
		       struct fay_error *error)
{
	return fay_unit_compile(module, spec, NULL, 0, options, 0, image, NULL, error);
}
