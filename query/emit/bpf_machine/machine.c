/* SPDX-License-Identifier: MIT */
/*
 * Where BPF programs differ from native probes, but for what an event is made of (event.c): the
 * state is the processor's slot in a map; there is a ring for rows; and what indexes memory must be
 * bounded in a way that the kernel's verifier sees.
 */
#include "bpf_machine_private.h"

#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include <linux/bpf.h>

#define PROGRAMS_FROM 0x10000u /* vm.mmap_min_addr */
#define PROGRAMS_BELOW (UINT64_C(1) << 47)
#define OWN_FRAMES 2u
/* of the function that calls the programs of a system call's tracepoint: a return address in it is
 * no further from its start */
#define CALLER_BYTES 64u

static LLVMValueRef i64(const struct fay_codegen *g, uint64_t value)
{
	return fay_codegen_i64(g, value);
}

LLVMValueRef fay_bpf_helper(struct fay_codegen *g, uint32_t helper, LLVMValueRef *arguments,
			    unsigned count)
{
	LLVMTypeRef types[5];
	for (unsigned i = 0; i < count; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	LLVMTypeRef type = LLVMFunctionType(g->i64, types, count, 0);
	/* A call of a small number as an address is how LLVM's BPF target spells a helper. */
	LLVMValueRef address = LLVMConstIntToPtr(i64(g, helper), g->pointer);
	return LLVMBuildCall2(g->builder, type, address, arguments, count, "");
}

/* An ld_imm64 with that source register. */
static LLVMValueRef pseudo(struct fay_codegen *g, uint32_t source, uint32_t number)
{
	unsigned id = LLVMLookupIntrinsicID("llvm.bpf.pseudo", strlen("llvm.bpf.pseudo"));
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(g->module, id, NULL, 0);
	LLVMValueRef arguments[] = { i64(g, source), i64(g, number) };
	return LLVMBuildCall2(g->builder, LLVMIntrinsicGetType(g->context, id, NULL, 0), function,
			      arguments, 2, "");
}

LLVMValueRef fay_bpf_map_reference(struct fay_codegen *g, enum fay_bpf_map map, uint32_t source)
{
	g->bpf->maps |= 1u << map;
	return LLVMBuildIntToPtr(g->builder, pseudo(g, source, map), g->pointer, "");
}

LLVMValueRef fay_bpf_machine_value(struct fay_codegen *g, enum fay_bpf_value value)
{
	return pseudo(g, FAY_BPF_PSEUDO_MACHINE, value);
}

/* Volatile: the kernel's verifier knows what lies at these places by size, so nothing may be merged
 * or cut. */
LLVMValueRef fay_bpf_load(struct fay_codegen *g, LLVMValueRef address, uint64_t offset,
			  uint32_t bytes)
{
	LLVMTypeRef type = LLVMIntTypeInContext(g->context, bytes * 8);
	LLVMValueRef load =
		LLVMBuildLoad2(g->builder, type, fay_codegen_at(g, address, i64(g, offset)), "");
	LLVMSetVolatile(load, 1);
	LLVMSetAlignment(load, bytes);
	return LLVMBuildZExt(g->builder, load, g->i64, "");
}

LLVMValueRef fay_bpf_context(struct fay_codegen *g, uint32_t index)
{
	return fay_bpf_load(g, g->event, 8 * (uint64_t)index, 8);
}

void fay_bpf_require(struct fay_codegen *g, LLVMValueRef condition)
{
	LLVMBasicBlockRef next = fay_codegen_block(g, "goes_on");
	LLVMBuildCondBr(g->builder, condition, next, g->leave);
	fay_codegen_continue(g, next);
}

static LLVMValueRef pointer(struct fay_codegen *g, LLVMValueRef address)
{
	return LLVMBuildIntToPtr(g->builder, address, g->pointer, "");
}

/* --- the machine
 * -------------------------------------------------------------------------------------------------
 * */

LLVMValueRef fay_bpf_hide(struct fay_codegen *g, LLVMValueRef value)
{
	LLVMTypeRef type = LLVMFunctionType(g->i64, &g->i64, 1, 0);
	LLVMValueRef nothing =
		LLVMGetInlineAsm(type, "", 0, "=r,0", 4, 1, 0, LLVMInlineAsmDialectATT, 0);
	return LLVMBuildCall2(g->builder, type, nothing, &value, 1, "");
}

/* The address is hidden, since the optimiser would keep one for each word, and the program's stack
 * has no room for those. */
LLVMValueRef fay_bpf_word(struct fay_codegen *g, LLVMValueRef memory, uint32_t offset)
{
	return fay_bpf_load(
		g, pointer(g, fay_bpf_hide(g, LLVMBuildPtrToInt(g->builder, memory, g->i64, ""))),
		offset, 8);
}

/* Memory of the program's stack has its place where the program begins. */
LLVMValueRef fay_bpf_stack_words(struct fay_codegen *g, uint32_t words)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(g->builder),
			  entry = LLVMGetEntryBasicBlock(g->function);
	LLVMPositionBuilderBefore(g->builder, LLVMGetFirstInstruction(entry));
	LLVMValueRef place = LLVMBuildAlloca(g->builder, LLVMArrayType2(g->i64, words), "words");
	LLVMSetAlignment(place, 8);
	LLVMPositionBuilderAtEnd(g->builder, here);
	return place;
}

/* How many of the innermost frames are the BPF program itself and what calls it. Newer kernels have
 * one function more between system calls' tracepoints and that. */
static LLVMValueRef own_frames(struct fay_codegen *g, LLVMValueRef frames)
{
	bool exit = g->bpf->role == ROLE_EXIT;
	if (g->bpf->role == ROLE_TIMER) /* the interrupted code is walked */
		return i64(g, 0);
	if (!exit && g->bpf->role != ROLE_ENTER)
		return i64(g, OWN_FRAMES);
	LLVMValueRef arguments[] = { g->event, frames, i64(g, 8), i64(g, OWN_FRAMES) };
	fay_bpf_helper(g, BPF_FUNC_get_stack, arguments, 4);
	LLVMValueRef caller = fay_bpf_machine_value(g, exit ? FAY_BPF_VALUE_EXIT_CALLER
							    : FAY_BPF_VALUE_ENTER_CALLER);
	LLVMValueRef inside = LLVMBuildSub(g->builder, fay_bpf_word(g, frames, 0), caller, "");
	LLVMValueRef more = LLVMBuildICmp(g->builder, LLVMIntULT, inside, i64(g, CALLER_BYTES), "");
	return LLVMBuildSelect(g->builder, more, i64(g, OWN_FRAMES + 1), i64(g, OWN_FRAMES), "");
}

/* Where a program keeps something else than frame pointers, the kernel's walk goes on with words of
 * its stack. The first that cannot be an address of a program ends it. */
static void end_at_nonsense(struct fay_codegen *g, LLVMValueRef frames, uint32_t count)
{
	LLVMValueRef all = LLVMConstAllOnes(g->i64), none = i64(g, 0), kept = all;
	for (uint32_t i = 0; i < count; i++) {
		LLVMValueRef word = fay_bpf_word(g, frames, 8 * i);
		LLVMValueRef above = LLVMBuildSub(g->builder, word, i64(g, PROGRAMS_FROM), "");
		LLVMValueRef good = LLVMBuildICmp(g->builder, LLVMIntULT, above,
						  i64(g, PROGRAMS_BELOW - PROGRAMS_FROM), "");
		kept = LLVMBuildSelect(g->builder, good, kept, none, "");
		fay_codegen_store(g, frames, 8 * i, LLVMBuildAnd(g->builder, word, kept, ""));
	}
}

/* The helper fills in the frames that there are. What the kernel's walk leaves out of a program's
 * stack is code without frame pointers. */
LLVMValueRef fay_bpf_frames(struct fay_codegen *g, const struct fay_expr *expr)
{
	uint32_t count = (uint32_t)expr->value;
	LLVMValueRef frames = fay_bpf_stack_words(g, count);
	for (uint32_t i = 0; i < count; i++)
		fay_codegen_store(g, frames, 8 * i, fay_codegen_i64(g, 0));
	LLVMValueRef arguments[] = { g->event, frames, fay_codegen_i64(g, 8 * count),
				     expr->length ? own_frames(g, frames)
						  : fay_codegen_i64(g, BPF_F_USER_STACK) };
	fay_bpf_helper(g, BPF_FUNC_get_stack, arguments, 4);
	if (!expr->length)
		end_at_nonsense(g, frames, count);
	return frames;
}

LLVMValueRef fay_bpf_limit(struct fay_codegen *g, LLVMValueRef value, uint64_t limit)
{
	LLVMValueRef hidden = fay_bpf_hide(g, value);
	LLVMValueRef inside = LLVMBuildICmp(g->builder, LLVMIntULE, hidden, i64(g, limit), "");
	return LLVMBuildSelect(g->builder, inside, hidden, i64(g, limit), "");
}

void fay_bpf_order(struct fay_codegen *g)
{
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->context), NULL, 0, 0);
	LLVMValueRef nothing =
		LLVMGetInlineAsm(type, "", 0, "~{memory}", 9, 1, 0, LLVMInlineAsmDialectATT, 0);
	LLVMBuildCall2(g->builder, type, nothing, NULL, 0, "");
}

LLVMValueRef fay_bpf_divide(struct fay_codegen *g, LLVMValueRef x, LLVMValueRef y, bool quotient)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef zero = i64(g, 0);
	LLVMValueRef x_negative = LLVMBuildICmp(b, LLVMIntSLT, x, zero, ""),
		     y_negative = LLVMBuildICmp(b, LLVMIntSLT, y, zero, "");
	LLVMValueRef x_size = LLVMBuildSelect(b, x_negative, LLVMBuildNeg(b, x, ""), x, "");
	LLVMValueRef y_size = LLVMBuildSelect(b, y_negative, LLVMBuildNeg(b, y, ""), y, "");
	LLVMValueRef result = quotient ? LLVMBuildUDiv(b, x_size, y_size, "")
				       : LLVMBuildURem(b, x_size, y_size, "");
	LLVMValueRef negative = quotient ? LLVMBuildXor(b, x_negative, y_negative, "") : x_negative;
	return LLVMBuildSelect(b, negative, LLVMBuildNeg(b, result, ""), result, "");
}

LLVMValueRef fay_bpf_square_part(struct fay_codegen *g, LLVMValueRef x, int part)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef half = i64(g, 32), mask = i64(g, UINT32_MAX);
	LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, x, i64(g, 0), "");
	LLVMValueRef size = LLVMBuildSelect(b, negative, LLVMBuildNeg(b, x, ""), x, "");
	LLVMValueRef high = LLVMBuildLShr(b, size, half, ""), low = LLVMBuildAnd(b, size, mask, "");
	/* (high 2^32 + low)^2, added up in columns of 32 bits; high is at most 2^31, and low is 0
	 * if it is that. */
	LLVMValueRef squares[] = { LLVMBuildMul(b, low, low, ""), LLVMBuildMul(b, high, high, "") };
	LLVMValueRef twice = LLVMBuildShl(b, LLVMBuildMul(b, high, low, ""), i64(g, 1), "");
	LLVMValueRef column = squares[0];
	for (int i = 0; i < part; i++) {
		column = LLVMBuildLShr(b, column, half, "");
		if (i == 0)
			column = LLVMBuildAdd(b, column, LLVMBuildAnd(b, twice, mask, ""), "");
		if (i == 1) {
			column = LLVMBuildAdd(b, column, LLVMBuildLShr(b, twice, half, ""), "");
			column = LLVMBuildAdd(b, column, LLVMBuildAnd(b, squares[1], mask, ""), "");
		}
		if (i == 2)
			column =
				LLVMBuildAdd(b, column, LLVMBuildLShr(b, squares[1], half, ""), "");
	}
	return LLVMBuildAnd(b, column, mask, "");
}

/* --- state
 * -------------------------------------------------------------------------------------------------
 * */

LLVMValueRef fay_bpf_processor(struct fay_codegen *g)
{
	if (!g->bpf->cpu)
		g->bpf->cpu = fay_bpf_helper(g, BPF_FUNC_get_smp_processor_id, NULL, 0);
	return g->bpf->cpu;
}

static void count_in_slot(struct fay_codegen *g, uint64_t offset)
{
	LLVMValueRef old = fay_codegen_load(g, g->bpf->slot, offset);
	fay_codegen_store(g, g->bpf->slot, offset, LLVMBuildAdd(g->builder, old, i64(g, 1), ""));
}

static LLVMValueRef busy_of(struct fay_codegen *g)
{
	return fay_codegen_at(g, g->bpf->slot, i64(g, offsetof(struct fay_slot_header, busy)));
}

static void set_busy(struct fay_codegen *g, unsigned busy)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(g->context);
	LLVMValueRef store = LLVMBuildStore(g->builder, LLVMConstInt(i32, busy, 0), busy_of(g));
	LLVMSetVolatile(store, 1);
	LLVMSetAlignment(store, 4);
}

/* Sets it; whether it was set. Programs of traps may be put aside for one another between any two
 * instructions. */
static LLVMValueRef take_busy(struct fay_codegen *g)
{
	if (!g->bpf->trap)
		return fay_bpf_load(g, g->bpf->slot, offsetof(struct fay_slot_header, busy), 4);
	return LLVMBuildAtomicRMW(g->builder, LLVMAtomicRMWBinOpXchg, busy_of(g), i64(g, 1),
				  LLVMAtomicOrderingSequentiallyConsistent, 0);
}

static void count_lost(struct fay_codegen *g)
{
	uint64_t offset = offsetof(struct fay_slot_header, lost_reentrant);
	if (g->bpf->trap)
		LLVMBuildAtomicRMW(g->builder, LLVMAtomicRMWBinOpAdd,
				   fay_codegen_at(g, g->bpf->slot, i64(g, offset)), i64(g, 1),
				   LLVMAtomicOrderingMonotonic, 0);
	else
		count_in_slot(g, offset);
}

/* An event in the middle of another's update, from an interrupt on the same processor, is counted
 * as lost. */
static void guard(struct fay_codegen *g)
{
	LLVMBasicBlockRef lost = fay_codegen_block(g, "lost_reentrant"),
			  free_ = fay_codegen_block(g, "free");
	LLVMValueRef busy = take_busy(g);
	LLVMBuildCondBr(g->builder, LLVMBuildICmp(g->builder, LLVMIntEQ, busy, i64(g, 0), ""),
			free_, lost);
	fay_codegen_continue(g, lost);
	count_lost(g);
	LLVMBuildBr(g->builder, g->leave);
	LLVMBasicBlockRef done = fay_codegen_block(g, "done");
	fay_codegen_continue(g, done);
	fay_bpf_order(g);
	set_busy(g, 0);
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, free_);
	if (!g->bpf->trap)
		set_busy(g, 1);
	fay_bpf_order(g);
	g->leave = fay_codegen_block(g, "leave_busy");
	g->bpf->out = done;
}

/* What First and Last need wherever the row is. */
static void take_time(struct fay_codegen *g)
{
	for (uint32_t i = g->p->keys; i < g->p->keys + g->p->values; i++) {
		enum fay_merge merge = g->p->columns[i].expr->aggregate->merge;
		if (merge == FAY_MERGE_FIRST || merge == FAY_MERGE_LAST)
			fay_bpf_time(g);
	}
}

void fay_bpf_enter(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef cpu = fay_bpf_hide(g, fay_bpf_processor(g));
	fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntULT, cpu,
					 fay_bpf_machine_value(g, FAY_BPF_VALUE_PROCESSORS), ""));
	LLVMValueRef slots = fay_bpf_map_reference(g, FAY_BPF_SLOTS, BPF_PSEUDO_MAP_VALUE);
	g->bpf->slot = fay_codegen_at(g, slots, LLVMBuildMul(b, cpu, i64(g, g->bpf->stride), ""));
	g->local = fay_codegen_at(g, g->bpf->slot, i64(g, FAY_SLOT_HEADER));
	if (g->bpf->guarded)
		guard(g);
	take_time(g);
}

LLVMValueRef fay_bpf_reserve(struct fay_codegen *g, bool zeroed)
{
	LLVMValueRef arguments[] = { fay_bpf_map_reference(g, FAY_BPF_RING, BPF_PSEUDO_MAP_FD),
				     i64(g, g->p->row_size), i64(g, 0) };
	LLVMValueRef word = fay_bpf_helper(g, BPF_FUNC_ringbuf_reserve, arguments, 3);
	LLVMBasicBlockRef none = fay_codegen_block(g, "no_room"),
			  room = fay_codegen_block(g, "room_in_ring");
	LLVMBuildCondBr(g->builder, LLVMBuildICmp(g->builder, LLVMIntEQ, word, i64(g, 0), ""), none,
			room);
	fay_codegen_continue(g, none);
	count_in_slot(g, offsetof(struct fay_slot_header, lost_full));
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, room);
	LLVMValueRef row = pointer(g, word);
	for (uint32_t at = 0; zeroed && at < g->p->row_size; at += 8) {
		/* Volatile, or it would become a call of memset(), which is not there. */
		LLVMValueRef store =
			LLVMBuildStore(g->builder, i64(g, 0), fay_codegen_at(g, row, i64(g, at)));
		LLVMSetVolatile(store, 1);
		LLVMSetAlignment(store, 8);
	}
	return row;
}

void fay_bpf_submit(struct fay_codegen *g, LLVMValueRef row)
{
	LLVMValueRef arguments[] = { row, i64(g, BPF_RB_NO_WAKEUP) };
	fay_bpf_helper(g, BPF_FUNC_ringbuf_submit, arguments, 2);
}

LLVMValueRef fay_bpf_send(struct fay_codegen *g, LLVMValueRef record, LLVMValueRef size)
{
	LLVMValueRef arguments[] = { fay_bpf_map_reference(g, FAY_BPF_RING, BPF_PSEUDO_MAP_FD),
				     record, size, i64(g, BPF_RB_NO_WAKEUP) };
	return fay_bpf_helper(g, BPF_FUNC_ringbuf_output, arguments, 4);
}
