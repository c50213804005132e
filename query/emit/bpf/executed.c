/* SPDX-License-Identifier: MIT */
/*
 * System calls that do not end with the registers that they began with. An execve that succeeded
 * ends in the new program, of which all of them are zero: its arguments are noted by process as it
 * begins. What its path was cannot be read there, but the kernel has put it behind the new
 * program's environment (fs/exec.c). rt_sigreturn, of which program.c knows, has no arguments.
 */
#include "programs_private.h"

#include <asm/unistd_64.h>
#include <string.h>

#define ARGUMENTS 6u

static bool is_executing(uint64_t number)
{
	return number == __NR_execve || number == __NR_execveat;
}

bool fay_bpf_notes_executed(const struct fay_plan_private *p)
{
	bool found = false;
	const struct fay_kernel_source *source = p->checked.kernel;
	for (uint32_t i = 0; i < source->count; i++)
		found |= is_executing(source->points[i].number);
	for (unsigned bucket = 0; found && bucket < FAY_EXPR_BUCKETS; bucket++)
		for (const struct fay_expr *expr = p->checked.exprs.buckets[bucket]; expr;
		     expr = expr->next)
			if (expr->op == EXPR_ARG)
				return p->checked.uses_end;
	return false;
}

static LLVMValueRef executes(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	return LLVMBuildOr(
		b, LLVMBuildICmp(b, LLVMIntEQ, g->bpf->number, fay_codegen_i64(g, __NR_execve), ""),
		LLVMBuildICmp(b, LLVMIntEQ, g->bpf->number, fay_codegen_i64(g, __NR_execveat), ""),
		"");
}

/* The process is the key: if another thread than the first executes, it ends as the first. */
static void put_process(struct fay_codegen *g)
{
	fay_codegen_store(
		g, g->bpf->buffer, 0,
		LLVMBuildLShr(g->builder, fay_bpf_identity(g), fay_codegen_i64(g, 32), ""));
}

void fay_bpf_note_executed(struct fay_codegen *g)
{
	LLVMValueRef words = fay_bpf_stack_words(g, ARGUMENTS);
	fay_bpf_require(g, executes(g));
	put_process(g);
	for (uint32_t i = 0; i < ARGUMENTS; i++)
		fay_codegen_store(g, words, 8 * i, fay_bpf_syscall_argument(g, i));
	LLVMValueRef arguments[] = { fay_bpf_map_reference(g, FAY_BPF_EXECUTED, BPF_PSEUDO_MAP_FD),
				     g->bpf->buffer, words, fay_codegen_i64(g, BPF_ANY) };
	fay_bpf_helper(g, BPF_FUNC_map_update_elem, arguments, 4);
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, g->leave);
}

/* Where the new program has its path; NULL: the kernel's types do not say. */
static LLVMValueRef path_in_program(struct fay_codegen *g)
{
	uint32_t mm, end;
	LLVMValueRef task = fay_bpf_current_task(g);
	if (!fay_bpf_member_offset(g, task, "task_struct", "mm", &mm) ||
	    !fay_bpf_member_offset(g, task, "mm_struct", "env_end", &end))
		return NULL;
	return fay_bpf_load(
		g, LLVMBuildIntToPtr(g->builder, fay_bpf_load(g, task, mm, 8), g->pointer, ""), end,
		8);
}

static void take_noted(struct fay_codegen *g, LLVMValueRef words, LLVMBasicBlockRef after)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef map = fay_bpf_map_reference(g, FAY_BPF_EXECUTED, BPF_PSEUDO_MAP_FD);
	put_process(g);
	LLVMValueRef lookup[] = { map, g->bpf->buffer };
	LLVMValueRef found = fay_bpf_helper(g, BPF_FUNC_map_lookup_elem, lookup, 2);
	LLVMBasicBlockRef noted = fay_codegen_block(g, "noted"),
			  path = fay_codegen_block(g, "path");
	LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, found, fay_codegen_i64(g, 0), ""), noted,
			path);
	fay_codegen_continue(g, noted);
	LLVMValueRef value = LLVMBuildIntToPtr(b, found, g->pointer, "");
	for (uint32_t i = 0; i < ARGUMENTS; i++)
		fay_codegen_store(g, words, 8 * i, fay_codegen_load(g, value, 8 * i));
	LLVMValueRef again[] = { fay_bpf_map_reference(g, FAY_BPF_EXECUTED, BPF_PSEUDO_MAP_FD),
				 g->bpf->buffer };
	fay_bpf_helper(g, BPF_FUNC_map_delete_elem, again, 2);
	LLVMBuildBr(b, path);
	fay_codegen_continue(g, path);
	LLVMValueRef there = path_in_program(g);
	if (there) {
		LLVMValueRef at = LLVMBuildICmp(b, LLVMIntEQ, g->bpf->number,
						fay_codegen_i64(g, __NR_execveat), "");
		fay_codegen_store(g, words, 8,
				  LLVMBuildSelect(b, at, there, fay_codegen_load(g, words, 8), ""));
		fay_codegen_store(g, words, 0,
				  LLVMBuildSelect(b, at, fay_codegen_load(g, words, 0), there, ""));
	}
	LLVMBuildBr(b, after);
}

void fay_bpf_take_executed(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef words = fay_bpf_stack_words(g, ARGUMENTS);
	LLVMBasicBlockRef executed = fay_codegen_block(g, "executed"),
			  after = fay_codegen_block(g, "arguments");
	for (uint32_t i = 0; i < ARGUMENTS; i++)
		fay_codegen_store(g, words, 8 * i, fay_bpf_syscall_argument(g, i));
	LLVMValueRef succeeded =
		LLVMBuildICmp(b, LLVMIntEQ, fay_bpf_context(g, 1), fay_codegen_i64(g, 0), "");
	LLVMBuildCondBr(b, LLVMBuildAnd(b, succeeded, executes(g), ""), executed, after);
	fay_codegen_continue(g, executed);
	take_noted(g, words, after);
	fay_codegen_continue(g, after);
	g->bpf->begun = words;
}
