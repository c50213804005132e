/* SPDX-License-Identifier: MIT */
/*
 * Stacks of a program's functions: a call of the walk in query/runtime/stacks.c, which fills memory
 * of the probe's own behind the state. All stacks of an event are beginnings of one, the deepest,
 * which is walked once, where the first of them is asked for.
 */
#include "probe_private.h"

#include "fay/stacks.h"

#define REGISTER(number) (offsetof(struct fay_event, reg) + 8 * (number))
#define RSP 4u
#define RBP 5u

/* When an exception ends a call its frame may be gone: only the function is known. */
static void function_alone(struct fay_codegen *g, LLVMValueRef frames, LLVMValueRef function)
{
	fay_codegen_store(g, frames, 0, function);
	for (uint32_t i = 1; i < g->p->checked.exprs.stack_frames; i++)
		fay_codegen_store(g, frames, 8 * i, fay_codegen_i64(g, 0));
}

LLVMValueRef fay_codegen_frames(struct fay_codegen *g)
{
	enum fay_source kind = g->p->checked.kind;
	bool entry = kind == SOURCE_ENTRY && !g->inlined;
	LLVMValueRef frames =
		fay_codegen_at(g, g->local, fay_codegen_i64(g, fay_plan_scratch_offset(g->p)));
	LLVMValueRef address = fay_codegen_load(g, g->event, offsetof(struct fay_event, address));
	if (g->failed) {
		function_alone(g, frames, address);
		return frames;
	}
	LLVMValueRef arguments[] = {
		frames,
		g->global,
		address,
		fay_codegen_load(g, g->event,
				 entry ? offsetof(struct fay_event, stack_pointer) : REGISTER(RSP)),
		fay_codegen_load(g, g->event,
				 entry ? offsetof(struct fay_event, frame_pointer) : REGISTER(RBP)),
		fay_codegen_i64(g, g->p->checked.exprs.stack_frames),
		/* at its end a call has rsp and rbp as they were when it began */
		fay_codegen_i64(g, entry || kind == SOURCE_RETURN),
	};
	fay_codegen_call(g, "fay_query_stack", LLVMVoidTypeInContext(g->context), arguments, 7);
	g->stacks = true;
	return frames;
}

LLVMValueRef fay_codegen_frames_word(struct fay_codegen *g, LLVMValueRef frames, uint32_t count)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef hash = fay_codegen_i64(g, 0);
	for (uint32_t i = 0; i < count; i++) {
		hash = LLVMBuildXor(b, hash, fay_codegen_load(g, frames, 8 * i), "");
		hash = LLVMBuildMul(b, hash, fay_codegen_i64(g, 0x9e3779b97f4a7c15u), "");
		hash = LLVMBuildXor(b, hash, LLVMBuildLShr(b, hash, fay_codegen_i64(g, 32), ""),
				    "");
	}
	return hash;
}
