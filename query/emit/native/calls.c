/* SPDX-License-Identifier: MIT */
/* Arguments in `Return`: a probe at the entry that keeps them, and finding them in the one at the
 * end; both by the functions of query/runtime/calls.c. */
#include "native_private.h"

#include "query/runtime/runtime.h"

/* What the call is known by; returns how many arguments that is. */
static unsigned call_key(struct fay_codegen *g, LLVMValueRef *arguments)
{
	g->calls = true;
	arguments[0] =
		fay_codegen_at(g, g->local, fay_codegen_i64(g, fay_plan_scratch_offset(g->p)));
	arguments[1] = fay_codegen_load(g, g->event, offsetof(struct fay_event, stack_pointer));
	arguments[2] = fay_codegen_load(g, g->event, offsetof(struct fay_event, address));
	return 3;
}

void fay_codegen_keep_call(struct fay_codegen *g)
{
	LLVMValueRef arguments[9];
	unsigned count = call_key(g, arguments);
	for (unsigned i = 0; i < 6; i++) {
		bool kept = g->p->kept_arguments >> i & 1;
		arguments[count++] =
			kept ? fay_codegen_load(g, g->event,
						offsetof(struct fay_event, arg) + 8 * (uint64_t)i)
			     : fay_codegen_i64(g, 0);
	}
	fay_codegen_call(g, "fay_query_call_begin", LLVMVoidTypeInContext(g->context), arguments,
			 count);
}

void fay_codegen_find_call(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef arguments[3];
	unsigned count = call_key(g, arguments);
	LLVMValueRef slot = fay_codegen_call(g, "fay_query_call_end", g->i64, arguments, count);
	LLVMBasicBlockRef known = fay_codegen_block(g, "known");
	LLVMBuildCondBr(b,
			LLVMBuildICmp(b, LLVMIntULT, slot, fay_codegen_i64(g, FAY_CALLS_SLOTS), ""),
			known, g->leave);
	fay_codegen_continue(g, known);
	LLVMValueRef offset =
		LLVMBuildMul(b, LLVMBuildAnd(b, slot, fay_codegen_i64(g, FAY_CALLS_SLOTS - 1), ""),
			     fay_codegen_i64(g, sizeof(struct fay_kept_call)), "");
	offset = LLVMBuildAdd(b, offset,
			      fay_codegen_i64(g, offsetof(struct fay_kept_calls, slots) +
							 offsetof(struct fay_kept_call, args)),
			      "");
	g->kept = fay_codegen_at(g, arguments[0], offset);
}
