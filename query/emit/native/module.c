/* SPDX-License-Identifier: MIT */
/*
 * A plan's native probes as a module: those in programs, or those in the kernel beside them, which
 * are an image of their own.
 */
#include "native_private.h"

#include <stdlib.h>
#include <string.h>

#include <llvm-c/Analysis.h>

static LLVMValueRef load_number(struct fay_codegen *g, uint32_t offset)
{
	LLVMValueRef load =
		LLVMBuildLoad2(g->builder, LLVMInt32TypeInContext(g->context),
			       fay_codegen_at(g, g->event, fay_codegen_i64(g, offset)), "");
	LLVMSetAlignment(load, 4);
	return LLVMBuildZExt(g->builder, load, g->i64, "");
}

static void require(struct fay_codegen *g, LLVMValueRef condition)
{
	LLVMBasicBlockRef wanted = fay_codegen_block(g, "wanted");
	LLVMBuildCondBr(g->builder, condition, wanted, g->leave);
	fay_codegen_continue(g, wanted);
}

static void require_one_of(struct fay_codegen *g, uint32_t offset, const pid_t *numbers,
			   size_t count)
{
	LLVMValueRef number, found = LLVMConstInt(g->i1, 0, 0);
	if (!count)
		return;
	number = load_number(g, offset);
	for (size_t i = 0; i < count; i++)
		found = LLVMBuildOr(g->builder, found,
				    LLVMBuildICmp(g->builder, LLVMIntEQ, number,
						  fay_codegen_i64(g, (uint64_t)numbers[i]), ""),
				    "");
	require(g, found);
}

static void require_wanted(struct fay_codegen *g)
{
	const struct fay_event_filter *filter = g->filter;
	if (!filter)
		return;
	require_one_of(g, offsetof(struct fay_event, pid), filter->pids, filter->pid_count);
	require_one_of(g, offsetof(struct fay_event, tid), filter->tids, filter->tid_count);
}

static void generate_probe(struct fay_codegen *g, const struct fay_spec_probe *probe)
{
	g->failed = probe->kind == FAY_PROBE_EXCEPTION;
	g->inlined = g->p->checked.inlined && probe == &g->p->probes[1];
	memset(g->texts, 0, sizeof(g->texts));
	g->frames = NULL;
	fay_codegen_begin(g, probe->symbol);
	if (g->p->checked.calls && probe == &g->p->probes[1]) {
		fay_codegen_call_begins(g);
	} else {
		require_wanted(g);
		fay_codegen_body(g);
	}
	LLVMBuildRetVoid(g->builder);
}

/* Links in what the probes call, and hands the module over. */
static int finish(struct fay_codegen *g, LLVMModuleRef *module, struct fay_error *error)
{
	char *message = NULL;
	int code = fay_codegen_link(g, error);
	if (!code && LLVMVerifyModule(g->module, LLVMReturnStatusAction, &message))
		code = fay_error_set(error, FAY_E_INTERNAL,
				     "query: the generated code is malformed: %s",
				     message ? message : "");
	LLVMDisposeMessage(message);
	if (code)
		LLVMDisposeModule(g->module);
	else
		*module = g->module;
	return code;
}

/* `sides`: 1 << side of a join, or of its only source. */
static int generate(const struct fay_plan *plan, uint32_t sides,
		    const struct fay_event_filter *filter, LLVMContextRef context,
		    LLVMModuleRef *module, struct fay_error *error)
{
	struct fay_codegen g = {
		.plan = plan, .p = fay_plan_private(plan), .context = context, .filter = filter
	};
	g.values = calloc(g.p->checked.exprs.count + 1, sizeof(*g.values));
	if (!g.values)
		return fay_error_set(error, FAY_E_LIMIT, "query: out of memory");
	g.module = LLVMModuleCreateWithNameInContext("query", context);
	LLVMSetTarget(g.module, "x86_64-unknown-linux-gnu");
	fay_codegen_init(&g);
	fay_codegen_begin_lines(&g);
	for (unsigned side = 0; side < plan->source_count; side++) {
		g.p = fay_plan_stage(plan, side);
		fay_codegen_text_emitter(&g);
		for (uint32_t i = 0; sides >> side & 1 && i < g.p->probe_count; i++)
			generate_probe(&g, &g.p->probes[i]);
	}
	LLVMDisposeBuilder(g.builder);
	fay_codegen_end_lines(&g);
	free(g.values);
	return finish(&g, module, error);
}

/* Whether a query about the kernel has native probes. */
static int check_native(const struct fay_plan *plan, struct fay_error *error)
{
	if (plan->domain == DOMAIN_KERNEL && plan->kernel != FAY_KERNEL_FUNCTIONS)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"query: system calls and tracepoints of the kernel have no native probe");
	if (plan->domain == DOMAIN_KERNEL && fay_plan_private(plan)->checked.exprs.stack_frames)
		return fay_error_set(error, FAY_E_REFUSED,
				     "query: native probes in the kernel walk no stacks");
	return FAY_OK;
}

int fay_plan_generate(const struct fay_plan *plan, LLVMContextRef context, LLVMModuleRef *module,
		      struct fay_error *error)
{
	/* Of a source in the kernel beside one in programs the events come another way. */
	uint32_t sides = plan->domain == DOMAIN_USER ? ~plan->kernel_sides : ~0u;
	int code = check_native(plan, error);
	return code ? code : generate(plan, sides, NULL, context, module, error);
}

const struct fay_image_spec *fay_plan_kernel_spec(const struct fay_plan *plan)
{
	return plan->domain == DOMAIN_KERNEL ? &plan->spec : &plan->kernel_spec;
}

int fay_plan_generate_kernel(const struct fay_plan *plan, const struct fay_event_filter *filter,
			     LLVMContextRef context, LLVMModuleRef *module, struct fay_error *error)
{
	uint32_t sides = plan->domain == DOMAIN_KERNEL ? ~0u : plan->kernel_sides;
	int code = check_native(plan, error);
	return code ? code : generate(plan, sides, filter, context, module, error);
}
