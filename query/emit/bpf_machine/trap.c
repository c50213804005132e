/* SPDX-License-Identifier: MIT */
/*
 * A trap in a program (a uprobe): what its event has of the program's registers and memory. The
 * program's context is the kernel's struct pt_regs, which lies as struct user_regs_struct does.
 *
 * Where more is asked of a call's end than is known there, a trap at the function's entry keeps it
 * in a map, by where the return address lies: rsp is the same at both.
 */
#include "bpf_machine_private.h"

#include <sys/user.h>

#include <linux/bpf.h>

#define REGISTER(name) offsetof(struct user_regs_struct, name)
#define ARGUMENTS 6u

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
	return address;
}

/* Of what cannot be read, 0. */
static LLVMValueRef operand_value(struct fay_codegen *g, const struct fay_operand *operand)
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
		word = fay_bpf_user_word(
			g,
			LLVMBuildIntToPtr(g->builder, operand_address(g, operand), g->pointer, ""),
			operand->size);
		break;
	case FAY_OPERAND_ADDRESS: return operand_address(g, operand);
	default: word = i64(g, (uint64_t)operand->value); break;
	}
	return fay_codegen_extend(g, word, access);
}

/* Of a function, in its registers as it begins. */
static LLVMValueRef argument_register(struct fay_codegen *g, uint32_t index)
{
	static const uint8_t arguments[ARGUMENTS] = {
		7, 6, 2, 1, 8, 9
	}; /* rdi rsi rdx rcx r8 r9 */
	return program_register(g, arguments[index % ARGUMENTS]);
}

LLVMValueRef fay_bpf_trap_argument(struct fay_codegen *g, uint32_t index)
{
	const struct fay_trap *trap = g->bpf->trap;
	if (trap->kind == FAY_TRAP_END)
		return g->bpf->arguments[index % ARGUMENTS];
	if (!trap->function.marker)
		return argument_register(g, index);
	return index < trap->operand_count ? operand_value(g, &trap->operands[index]) : i64(g, 0);
}

LLVMValueRef fay_bpf_trap_caller(struct fay_codegen *g)
{
	LLVMValueRef stack = fay_bpf_load(g, g->event, REGISTER(rsp), 8);
	return fay_bpf_user_word(g, LLVMBuildIntToPtr(g->builder, stack, g->pointer, ""), 8);
}

LLVMValueRef fay_bpf_trap_result(struct fay_codegen *g)
{
	return g->bpf->trap->left ? i64(g, 0) : fay_bpf_load(g, g->event, REGISTER(rax), 8);
}

/* At the words' begin. */
static void put_key(struct fay_codegen *g, LLVMValueRef words)
{
	LLVMBuilderRef b = g->builder;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(g->context);
	LLVMValueRef process = LLVMBuildLShr(b, fay_bpf_identity(g), i64(g, 32), "");
	uint64_t at = offsetof(struct fay_bpf_call_key, process);
	fay_codegen_store(g, words, offsetof(struct fay_bpf_call_key, stack),
			  fay_bpf_load(g, g->event, REGISTER(rsp), 8));
	LLVMBuildStore(b, LLVMBuildTrunc(b, process, i32, ""),
		       fay_codegen_at(g, words, i64(g, at)));
	at = offsetof(struct fay_bpf_call_key, function);
	LLVMBuildStore(b, LLVMConstInt(i32, g->bpf->function, 0),
		       fay_codegen_at(g, words, i64(g, at)));
}

static uint64_t argument_at(uint32_t index)
{
	return offsetof(struct fay_bpf_call, arguments) + 8 * index;
}

LLVMValueRef fay_bpf_keep_call(struct fay_codegen *g)
{
	const uint32_t key = sizeof(struct fay_bpf_call_key);
	LLVMValueRef words = fay_bpf_stack_words(g, (key + sizeof(struct fay_bpf_call)) / 8),
		     call = fay_codegen_at(g, words, i64(g, key));
	put_key(g, words);
	fay_codegen_store(g, call, offsetof(struct fay_bpf_call, time),
			  fay_bpf_helper(g, BPF_FUNC_ktime_get_boot_ns, NULL, 0));
	for (uint32_t i = 0; i < ARGUMENTS; i++)
		fay_codegen_store(g, call, argument_at(i), argument_register(g, i));
	LLVMValueRef arguments[] = { fay_bpf_map_reference(g, FAY_BPF_TRAPPED, BPF_PSEUDO_MAP_FD),
				     words, call, i64(g, BPF_ANY) };
	return fay_bpf_helper(g, BPF_FUNC_map_update_elem, arguments, 4);
}

/* All that is kept is read before it is given up: another processor may have its place at once. */
void fay_bpf_take_kept(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef words = fay_bpf_stack_words(g, sizeof(struct fay_bpf_call_key) / 8);
	put_key(g, words);
	LLVMValueRef arguments[] = { fay_bpf_map_reference(g, FAY_BPF_TRAPPED, BPF_PSEUDO_MAP_FD),
				     words };
	LLVMValueRef found = fay_bpf_helper(g, BPF_FUNC_map_lookup_elem, arguments, 2);
	fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntNE, found, i64(g, 0), ""));
	LLVMValueRef call = LLVMBuildIntToPtr(b, found, g->pointer, "");
	LLVMValueRef since = fay_bpf_load(g, call, offsetof(struct fay_bpf_call, time), 8);
	for (uint32_t i = 0; i < ARGUMENTS && g->p->checked.return_arguments; i++)
		g->bpf->arguments[i] = fay_bpf_load(g, call, argument_at(i), 8);
	LLVMValueRef again[] = { fay_bpf_map_reference(g, FAY_BPF_TRAPPED, BPF_PSEUDO_MAP_FD),
				 words };
	fay_bpf_helper(g, BPF_FUNC_map_delete_elem, again, 2);
	fay_bpf_time(g);
	g->bpf->duration = LLVMBuildSub(b, g->bpf->time, since, "");
}

void fay_bpf_take_begun(struct fay_codegen *g)
{
	for (uint32_t i = 0; i < ARGUMENTS && g->p->checked.return_arguments; i++)
		g->bpf->arguments[i] = argument_register(g, i);
	g->bpf->duration = i64(g, 0);
}

/* By the flags: the opcode's low bit turns round what the other three say (Intel SDM volume 1,
 * appendix B.1). */
static LLVMValueRef is_taken(struct fay_codegen *g, unsigned condition)
{
	enum { CARRY = 1, PARITY = 4, ZERO = 64, SIGN = 128, OVERFLOW = 2048 };
	static const uint16_t any_of[] = { OVERFLOW, CARRY,  ZERO, CARRY | ZERO,
					   SIGN,     PARITY, 0,    ZERO };
	LLVMBuilderRef b = g->builder;
	LLVMValueRef flags = fay_bpf_load(g, g->event, REGISTER(eflags), 8), zero = i64(g, 0);
	LLVMValueRef set = LLVMBuildAnd(b, flags, i64(g, any_of[condition >> 1]), "");
	if (condition >= 12) { /* less: sign and overflow differ */
		LLVMValueRef sign = LLVMBuildAnd(b, flags, i64(g, SIGN), ""),
			     overflow = LLVMBuildAnd(b, flags, i64(g, OVERFLOW), "");
		overflow = LLVMBuildLShr(b, overflow, i64(g, 4), "");
		set = LLVMBuildOr(b, set, LLVMBuildXor(b, sign, overflow, ""), "");
	}
	return LLVMBuildICmp(b, condition & 1 ? LLVMIntEQ : LLVMIntNE, set, zero, "");
}

void fay_bpf_require_jump(struct fay_codegen *g)
{
	if (g->bpf->trap->condition != FAY_TRAP_ALWAYS)
		fay_bpf_require(g, is_taken(g, g->bpf->trap->condition));
}

LLVMValueRef fay_bpf_trap_target(struct fay_codegen *g)
{
	return operand_value(g, &g->bpf->trap->operands[0]);
}

void fay_bpf_require_outside(struct fay_codegen *g, LLVMValueRef target)
{
	const struct fay_trap *trap = g->bpf->trap;
	LLVMBuilderRef b = g->builder;
	LLVMValueRef distance =
		LLVMBuildSub(b, target, fay_bpf_load(g, g->event, REGISTER(rip), 8), "");
	for (uint32_t i = 0; i < trap->part_count; i++) {
		int64_t from = trap->parts[i].from, to = trap->parts[i].to;
		LLVMValueRef into = LLVMBuildSub(b, distance, i64(g, (uint64_t)from), "");
		fay_bpf_require(
			g, LLVMBuildICmp(b, LLVMIntUGE, into, i64(g, (uint64_t)(to - from)), ""));
	}
}
