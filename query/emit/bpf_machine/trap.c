/* SPDX-License-Identifier: MIT */
/*
 * A trap in a program (a uprobe): what its event has of the program's registers and memory. The
 * program's context is the kernel's struct pt_regs, which lies as struct user_regs_struct does.
 */
#include "bpf_machine_private.h"

#include <sys/user.h>

#include <linux/bpf.h>

#define REGISTER(name) offsetof(struct user_regs_struct, name)

static LLVMValueRef i64(const struct fay_codegen *g, uint64_t value)
{
	return fay_codegen_i64(g, value);
}

/* By its number in instructions. */
static LLVMValueRef program_register(struct fay_codegen *g, unsigned number)
{
	static const uint64_t offsets[] = { REGISTER(rax), REGISTER(rcx), REGISTER(rdx),
					    REGISTER(rbx), REGISTER(rsp), REGISTER(rbp),
					    REGISTER(rsi), REGISTER(rdi), REGISTER(r8),
					    REGISTER(r9),  REGISTER(r10), REGISTER(r11),
					    REGISTER(r12), REGISTER(r13), REGISTER(r14),
					    REGISTER(r15) };
	return fay_bpf_load(g, g->event, offsets[number & 15], 8);
}

LLVMValueRef fay_bpf_user_word(struct fay_codegen *g, LLVMValueRef address, uint32_t bytes)
{
	LLVMValueRef arguments[] = { g->bpf->buffer, i64(g, bytes), address };
	fay_bpf_clear_buffer(g);
	fay_bpf_helper(g, BPF_FUNC_probe_read_user, arguments, 3);
	return fay_bpf_load(g, g->bpf->buffer, 0, 8);
}

static LLVMValueRef operand_address(struct fay_codegen *g, const struct fay_operand *operand)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef address = i64(g, (uint64_t)operand->value);
	if (operand->base != FAY_OPERAND_NO_REGISTER)
		address = LLVMBuildAdd(b, address, program_register(g, operand->base), "");
	if (operand->index != FAY_OPERAND_NO_REGISTER)
		address = LLVMBuildAdd(b, address,
				       LLVMBuildMul(b, program_register(g, operand->index),
						    i64(g, operand->scale), ""),
				       "");
	return LLVMBuildIntToPtr(b, address, g->pointer, "");
}

/* As its note says where it is; of what cannot be read, 0. */
static LLVMValueRef marker_argument(struct fay_codegen *g, const struct fay_operand *operand)
{
	struct fay_access access = { .bytes = operand->size, .is_signed = operand->is_signed };
	LLVMValueRef word;
	switch (operand->form) {
	case FAY_OPERAND_REGISTER:
		word = program_register(g, operand->base);
		if (operand->high_byte)
			word = LLVMBuildLShr(g->builder, word, i64(g, 8), "");
		break;
	case FAY_OPERAND_MEMORY:
		word = fay_bpf_user_word(g, operand_address(g, operand), operand->size);
		break;
	default: word = i64(g, (uint64_t)operand->value); break;
	}
	return fay_codegen_extend(g, word, access);
}

LLVMValueRef fay_bpf_trap_argument(struct fay_codegen *g, uint32_t index)
{
	static const uint8_t arguments[] = { 7, 6, 2, 1, 8, 9 }; /* rdi rsi rdx rcx r8 r9 */
	const struct fay_trap *trap = g->bpf->trap;
	if (!trap->function.marker)
		return program_register(g, arguments[index % sizeof(arguments)]);
	return index < trap->operand_count ? marker_argument(g, &trap->operands[index]) : i64(g, 0);
}

LLVMValueRef fay_bpf_trap_caller(struct fay_codegen *g)
{
	LLVMValueRef stack = fay_bpf_load(g, g->event, REGISTER(rsp), 8);
	return fay_bpf_user_word(g, LLVMBuildIntToPtr(g->builder, stack, g->pointer, ""), 8);
}
