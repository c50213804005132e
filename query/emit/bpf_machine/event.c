/* SPDX-License-Identifier: MIT */
/*
 * What an event is made of in a BPF program: each field is read where it is first needed, from the
 * kernel's helpers, from the tracepoint's arguments and the structures that they point to, or, of a
 * trap in a program, from the program's registers and memory.
 */
#include "bpf_machine_private.h"

#include <string.h>
#include <sys/user.h>

#include <linux/bpf.h>

static LLVMValueRef i64(const struct fay_codegen *g, uint64_t value)
{
	return fay_codegen_i64(g, value);
}

static LLVMValueRef pointer(struct fay_codegen *g, LLVMValueRef address)
{
	return LLVMBuildIntToPtr(g->builder, address, g->pointer, "");
}

LLVMValueRef fay_bpf_identity(struct fay_codegen *g)
{
	if (!g->bpf->identity)
		g->bpf->identity = fay_bpf_helper(g, BPF_FUNC_get_current_pid_tgid, NULL, 0);
	return g->bpf->identity;
}

LLVMValueRef fay_bpf_start_of_thread(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef thread =
		fay_bpf_hide(g, LLVMBuildAnd(b, fay_bpf_identity(g), i64(g, UINT32_MAX), ""));
	fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntULT, thread,
					 fay_bpf_machine_value(g, FAY_BPF_VALUE_THREADS), ""));
	LLVMValueRef starts = fay_bpf_map_reference(g, FAY_BPF_STARTS, BPF_PSEUDO_MAP_VALUE);
	return fay_codegen_at(g, starts,
			      LLVMBuildMul(b, thread, i64(g, sizeof(struct fay_bpf_start)), ""));
}

LLVMValueRef fay_bpf_time(struct fay_codegen *g)
{
	if (!g->bpf->time)
		g->bpf->time = fay_bpf_helper(g, BPF_FUNC_ktime_get_boot_ns, NULL, 0);
	return LLVMBuildAdd(g->builder, g->bpf->time, fay_bpf_machine_value(g, FAY_BPF_VALUE_BOOT),
			    "");
}

static struct fay_operand_value one(LLVMValueRef value)
{
	return (struct fay_operand_value){ value, NULL };
}

/* The bytes that a helper put into the buffer. */
static struct fay_operand_value take_buffer(struct fay_codegen *g)
{
	return (struct fay_operand_value){ fay_bpf_load(g, g->bpf->buffer, 0, 8),
					   fay_bpf_load(g, g->bpf->buffer, 8, 8) };
}

void fay_bpf_clear_buffer(struct fay_codegen *g)
{
	for (unsigned i = 0; i < FAY_COMM_SIZE; i += 8)
		LLVMSetVolatile(LLVMBuildStore(g->builder, i64(g, 0),
					       fay_codegen_at(g, g->bpf->buffer, i64(g, i))),
				1);
}

static struct fay_operand_value comm(struct fay_codegen *g)
{
	LLVMValueRef arguments[] = { g->bpf->buffer, i64(g, FAY_COMM_SIZE) };
	fay_bpf_clear_buffer(g); /* not all kernels pad the name */
	fay_bpf_helper(g, BPF_FUNC_get_current_comm, arguments, 2);
	return take_buffer(g);
}

/* A system call's argument `index` in the registers that it began with, which it keeps. */
LLVMValueRef fay_bpf_syscall_argument(struct fay_codegen *g, uint32_t index)
{
	static const uint64_t offsets[] = {
		offsetof(struct user_regs_struct, rdi), offsetof(struct user_regs_struct, rsi),
		offsetof(struct user_regs_struct, rdx), offsetof(struct user_regs_struct, r10),
		offsetof(struct user_regs_struct, r8),  offsetof(struct user_regs_struct, r9)
	};
	if (g->bpf->begun)
		return fay_codegen_load(g, g->bpf->begun, 8 * (uint64_t)index);
	return fay_bpf_load(g, pointer(g, fay_bpf_context(g, 0)), offsets[index], 8);
}

/*
 * A function's argument as a number, whatever it is: a pointer that the kernel's verifier knows as
 * such could not be computed with, so the word is read as the kernel's memory that it lies in.
 */
static LLVMValueRef plain_argument(struct fay_codegen *g, uint32_t index)
{
	if (index >= g->bpf->argument_count)
		return i64(g, 0);
	/* Hidden, since the optimiser would load a named argument by this address, too, and the
	 * kernel's verifier wants it by the context and a constant. */
	LLVMValueRef context =
		pointer(g, fay_bpf_hide(g, LLVMBuildPtrToInt(g->builder, g->event, g->i64, "")));
	LLVMValueRef arguments[] = { g->bpf->buffer, i64(g, 8),
				     fay_codegen_at(g, context, i64(g, 8 * (uint64_t)index)) };
	fay_bpf_helper(g, BPF_FUNC_probe_read_kernel, arguments, 3);
	return fay_bpf_load(g, g->bpf->buffer, 0, 8);
}

/* A system call's result, or a function's, as its type has it; 0 of one that returns nothing. */
static LLVMValueRef returned(struct fay_codegen *g)
{
	const struct fay_btf_result *result = &g->bpf->result;
	if (g->bpf->trap)
		return fay_bpf_trap_result(g);
	if (g->bpf->role != ROLE_FUNCTION)
		return fay_bpf_context(g, 1);
	if (!result->bytes)
		return i64(g, 0);
	return fay_codegen_extend(g, plain_argument(g, g->bpf->argument_count - 1),
				  (struct fay_access){ .bytes = (uint8_t)result->bytes,
						       .is_signed = result->is_signed });
}

static LLVMValueRef module(struct fay_codegen *g)
{
	const struct fay_trap *trap = g->bpf->trap;
	return i64(g, fay_name_hash(trap ? trap->function.module : "kernel"));
}

static struct fay_operand_value field(struct fay_codegen *g, const struct fay_field *f)
{
	LLVMBuilderRef b = g->builder;
	if (!f->size) /* Failed */
		return one(fay_codegen_is_error(g, returned(g)));
	switch (f->offset) {
	case offsetof(struct fay_event, time): return one(fay_bpf_time(g));
	case offsetof(struct fay_event, pid):
		return one(LLVMBuildLShr(b, fay_bpf_identity(g), i64(g, 32), ""));
	case offsetof(struct fay_event, tid):
		return one(LLVMBuildAnd(b, fay_bpf_identity(g), i64(g, UINT32_MAX), ""));
	case offsetof(struct fay_event, cpu): return one(fay_bpf_processor(g));
	case offsetof(struct fay_event, comm): return comm(g);
	case offsetof(struct fay_event, function): return one(g->bpf->name);
	case offsetof(struct fay_event, module): return one(module(g));
	case offsetof(struct fay_event, caller): return one(fay_bpf_trap_caller(g));
	case offsetof(struct fay_event, duration): return one(g->bpf->duration);
	default: /* retval */ return one(returned(g));
	}
}

static struct fay_operand_value read_member(struct fay_codegen *g, LLVMValueRef address,
					    struct fay_access access)
{
	if (!access.string && g->bpf->trap)
		return one(fay_codegen_extend(
			g,
			fay_bpf_user_word(g, fay_codegen_at(g, address, i64(g, access.offset)),
					  access.bytes),
			access));
	if (!access.string)
		return one(fay_codegen_extend(
			g, fay_bpf_load(g, address, access.offset, access.bytes), access));
	/* with the NUL that the helper puts at its end */
	uint64_t size = access.limit ? access.limit + 1u : FAY_COMM_SIZE;
	LLVMValueRef arguments[] = { g->bpf->buffer, i64(g, size),
				     fay_codegen_at(g, address, i64(g, access.offset)) };
	fay_bpf_clear_buffer(g);
	fay_bpf_helper(g,
		       access.user || g->bpf->trap ? BPF_FUNC_probe_read_user_str
						   : BPF_FUNC_probe_read_kernel_str,
		       arguments, 3);
	return take_buffer(g);
}

static LLVMValueRef or_zero(struct fay_codegen *g, LLVMValueRef value, LLVMBasicBlockRef from,
			    LLVMBasicBlockRef without)
{
	LLVMValueRef phi = LLVMBuildPhi(g->builder, g->i64, ""), values[] = { value, i64(g, 0) };
	LLVMBasicBlockRef blocks[] = { from, without };
	LLVMAddIncoming(phi, values, blocks, 2);
	return phi;
}

struct fay_operand_value fay_bpf_member(struct fay_codegen *g, LLVMValueRef address,
					struct fay_access access)
{
	LLVMBasicBlockRef before = LLVMGetInsertBlock(g->builder);
	LLVMBasicBlockRef there = fay_codegen_block(g, "there"),
			  after = fay_codegen_block(g, "after");
	LLVMBuildCondBr(g->builder, LLVMBuildICmp(g->builder, LLVMIntEQ, address, i64(g, 0), ""),
			after, there);
	fay_codegen_continue(g, there);
	struct fay_operand_value value = read_member(g, pointer(g, address), access);
	LLVMBasicBlockRef from = LLVMGetInsertBlock(g->builder);
	LLVMBuildBr(g->builder, after);
	fay_codegen_continue(g, after);
	value.low = or_zero(g, value.low, from, before);
	if (value.high)
		value.high = or_zero(g, value.high, from, before);
	return value;
}

struct fay_operand_value fay_bpf_leaf(struct fay_codegen *g, const struct fay_expr *expr)
{
	if (expr->op == EXPR_FIELD)
		return field(g, &fay_fields[expr->value]);
	struct fay_access access = fay_access_unpack(expr->value);
	if (g->bpf->role == ROLE_ENTER || g->bpf->role == ROLE_EXIT)
		return one(
			fay_codegen_extend(g, fay_bpf_syscall_argument(g, access.offset), access));
	if (g->bpf->trap)
		return one(fay_codegen_extend(g, fay_bpf_trap_argument(g, access.offset), access));
	if (!expr->name)
		return one(plain_argument(g, access.offset));
	return one(fay_codegen_extend(g, fay_bpf_context(g, access.offset), access));
}
