/* SPDX-License-Identifier: MIT */
/*
 * Variables of a line that are computed (query/runtime/compute.h), and the probe at the beginnings
 * of the calls that the line is in.
 */
#include "probe_private.h"

#include "fay/stacks.h"

/* Where the records of calls are. */
static LLVMValueRef calls_of(struct fay_codegen *g)
{
	return fay_codegen_at(g, g->global, fay_codegen_i64(g, fay_plan_calls_offset(g->p)));
}

struct fay_operand_value fay_codegen_computed(struct fay_codegen *g, struct fay_access access)
{
	LLVMTypeRef words[] = { g->i64, g->i64 },
		    computed = LLVMStructTypeInContext(g->context, words, 2, 0);
	LLVMValueRef arguments[] = { g->event, fay_codegen_i64(g, 0), fay_codegen_i64(g, 0),
				     fay_codegen_i64(g, 0), NULL };
	bool calls = access.calls && g->p->checked.calls;
	for (unsigned i = 0; i < access.words; i++)
		arguments[1 + i] = fay_codegen_load(g, g->event, 8 * (access.offset + i));
	if (calls)
		arguments[4] = calls_of(g);
	LLVMValueRef value =
		fay_codegen_call(g, calls ? "fay_query_compute_call" : "fay_query_compute",
				 computed, arguments, calls ? 5 : 4);
	g->computes = true;
	value = LLVMBuildExtractValue(g->builder, value, access.known, "");
	return (struct fay_operand_value){ access.known ? value
							: fay_codegen_extend(g, value, access),
					   NULL };
}

void fay_codegen_call_begins(struct fay_codegen *g)
{
	LLVMValueRef arguments[] = { g->event, calls_of(g) };
	fay_codegen_call(g, "fay_query_call_begins", LLVMVoidTypeInContext(g->context), arguments,
			 2);
	g->computes = true;
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, g->leave);
}
