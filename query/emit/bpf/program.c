/* SPDX-License-Identifier: MIT */
/*
 * One BPF program: which events it is of, what is noted when a call begins and looked up when it
 * ends.
 */
#include "programs_private.h"

#include <asm/unistd_64.h>
#include <string.h>
#include <sys/user.h>

static void require_syscall(struct fay_codegen *g)
{
	const struct fay_kernel_source *source = g->bpf->source;
	LLVMBuilderRef b = g->builder;
	if (g->bpf->role == ROLE_EXIT) {
		LLVMValueRef registers =
			LLVMBuildIntToPtr(b, fay_bpf_context(g, 0), g->pointer, "");
		g->bpf->number =
			fay_bpf_load(g, registers, offsetof(struct user_regs_struct, orig_rax), 8);
		/* what has restored a program's registers has no number any more */
		LLVMValueRef restored = LLVMBuildICmp(b, LLVMIntEQ, g->bpf->number,
						      fay_codegen_i64(g, UINT64_MAX), "");
		g->bpf->number = LLVMBuildSelect(b, restored, fay_codegen_i64(g, __NR_rt_sigreturn),
						 g->bpf->number, "");
	} else {
		g->bpf->number = fay_bpf_context(g, 1);
	}
	if (source->count == 1) {
		fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntEQ, g->bpf->number,
						 fay_codegen_i64(g, source->points[0].number), ""));
		g->bpf->name = fay_codegen_i64(g, fay_name_hash(source->points[0].name));
	} else {
		fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntULT, g->bpf->number,
						 fay_codegen_i64(g, FAY_BPF_SYSCALLS), ""));
		LLVMValueRef names = fay_bpf_map_reference(g, FAY_BPF_NAMES, BPF_PSEUDO_MAP_VALUE);
		LLVMValueRef offset = LLVMBuildShl(b, g->bpf->number, fay_codegen_i64(g, 3), "");
		g->bpf->name = fay_codegen_load(g, fay_codegen_at(g, names, offset), 0);
		fay_bpf_require(
			g, LLVMBuildICmp(b, LLVMIntNE, g->bpf->name, fay_codegen_i64(g, 0), ""));
	}
	fay_bpf_require_native(g);
}

static void note_start(struct fay_codegen *g)
{
	LLVMValueRef start = fay_bpf_start_of_thread(g);
	fay_codegen_store(g, start, offsetof(struct fay_bpf_start, time),
			  fay_bpf_helper(g, BPF_FUNC_ktime_get_boot_ns, NULL, 0));
	fay_codegen_store(g, start, offsetof(struct fay_bpf_start, number), g->bpf->number);
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, g->leave);
}

static void set_duration(struct fay_codegen *g, LLVMValueRef since)
{
	fay_bpf_time(g);
	g->bpf->duration = LLVMBuildSub(g->builder, g->bpf->time, since, "");
}

/* Only calls whose beginning was seen. A note is used once: a call that never returns leaves one
 * that is another thread's later. */
static void take_start(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef start = fay_bpf_start_of_thread(g);
	LLVMValueRef time = fay_codegen_load(g, start, offsetof(struct fay_bpf_start, time));
	LLVMValueRef number = fay_codegen_load(g, start, offsetof(struct fay_bpf_start, number));
	fay_codegen_store(g, start, offsetof(struct fay_bpf_start, time), fay_codegen_i64(g, 0));
	fay_bpf_require(
		g, LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntNE, time, fay_codegen_i64(g, 0), ""),
				LLVMBuildICmp(b, LLVMIntEQ, number, g->bpf->number, ""), ""));
	set_duration(g, time);
}

/* Where the call's context lies, on the stack of whoever makes it: no other call that is under way
 * has it there, and its end finds it in the same place. */
static void put_call(struct fay_codegen *g)
{
	fay_codegen_store(g, g->bpf->buffer, 0,
			  LLVMBuildPtrToInt(g->builder, g->event, g->i64, ""));
}

static LLVMValueRef keep_call(struct fay_codegen *g)
{
	LLVMValueRef value = fay_codegen_at(g, g->bpf->buffer, fay_codegen_i64(g, 8));
	put_call(g);
	fay_codegen_store(g, value, 0, fay_bpf_helper(g, BPF_FUNC_ktime_get_boot_ns, NULL, 0));
	LLVMValueRef arguments[] = { fay_bpf_map_reference(g, FAY_BPF_CALLS, BPF_PSEUDO_MAP_FD),
				     g->bpf->buffer, value, fay_codegen_i64(g, BPF_ANY) };
	return fay_bpf_helper(g, BPF_FUNC_map_update_elem, arguments, 4);
}

/* In a word of a slot's header, behind the processors' slots, atomically. */
static void count_behind(struct fay_codegen *g, uint64_t word)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef own = LLVMBuildMul(b, fay_bpf_machine_value(g, FAY_BPF_VALUE_PROCESSORS),
					fay_codegen_i64(g, g->bpf->stride), "");
	LLVMValueRef slot = fay_codegen_at(
		g, fay_bpf_map_reference(g, FAY_BPF_SLOTS, BPF_PSEUDO_MAP_VALUE), own);
	LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd,
			   fay_codegen_at(g, slot, fay_codegen_i64(g, word)), fay_codegen_i64(g, 1),
			   LLVMAtomicOrderingMonotonic, 0);
}

static void lose_call(struct fay_codegen *g)
{
	count_behind(g, offsetof(struct fay_slot_header, lost_calls));
	LLVMBuildBr(g->builder, g->leave);
}

/* Without room the event is lost. */
static void note_call(struct fay_codegen *g)
{
	LLVMValueRef failed = g->bpf->trap ? fay_bpf_keep_call(g) : keep_call(g);
	fay_bpf_require(g, LLVMBuildICmp(g->builder, LLVMIntNE, failed, fay_codegen_i64(g, 0), ""));
	lose_call(g);
	fay_codegen_continue(g, g->leave);
}

/* Goes on where a call ends at the trap. */
static void require_end(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	const struct fay_trap *trap = g->bpf->trap;
	fay_bpf_require_jump(g);
	if (trap->part_count) {
		/* what cannot be read, and the program would first have to fetch from a disk */
		LLVMBasicBlockRef known = fay_codegen_block(g, "known"),
				  unknown = fay_codegen_block(g, "unknown");
		LLVMValueRef target = fay_bpf_trap_target(g);
		LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, target, fay_codegen_i64(g, 0), ""),
				known, unknown);
		fay_codegen_continue(g, unknown);
		lose_call(g);
		fay_codegen_continue(g, known);
		fay_bpf_require_outside(g, target);
	}
	if (trap->kept)
		fay_bpf_take_kept(g);
	else
		fay_bpf_take_begun(g);
	if (trap->left)
		count_behind(g, offsetof(struct fay_slot_header, left_by_jump));
}

/* Before anything is decided about the event: what was noted must not stay. */
static void take_call(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	put_call(g);
	LLVMValueRef arguments[] = { fay_bpf_map_reference(g, FAY_BPF_CALLS, BPF_PSEUDO_MAP_FD),
				     g->bpf->buffer };
	LLVMValueRef found = fay_bpf_helper(g, BPF_FUNC_map_lookup_elem, arguments, 2);
	fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntNE, found, fay_codegen_i64(g, 0), ""));
	LLVMValueRef time = fay_codegen_load(g, LLVMBuildIntToPtr(b, found, g->pointer, ""), 0);
	LLVMValueRef again[] = { fay_bpf_map_reference(g, FAY_BPF_CALLS, BPF_PSEUDO_MAP_FD),
				 g->bpf->buffer };
	fay_bpf_helper(g, BPF_FUNC_map_delete_elem, again, 2);
	set_duration(g, time);
}

/* Leaves unless events count now; several processors may count one. */
static void count_trap(struct fay_codegen *g)
{
	uint64_t number = g->bpf->object->program_count; /* this program's, behind the first word */
	LLVMValueRef events = fay_bpf_map_reference(g, FAY_BPF_EVENTS, BPF_PSEUDO_MAP_VALUE);
	fay_bpf_require(g, LLVMBuildICmp(g->builder, LLVMIntNE, fay_bpf_load(g, events, 0, 8),
					 fay_codegen_i64(g, 0), ""));
	LLVMBuildAtomicRMW(g->builder, LLVMAtomicRMWBinOpAdd,
			   fay_codegen_at(g, events, fay_codegen_i64(g, number * sizeof(uint64_t))),
			   fay_codegen_i64(g, 1), LLVMAtomicOrderingMonotonic, 0);
}

static void begin(struct fay_codegen *g, const char *section)
{
	char symbol[32];
	struct fay_codegen_bpf *bpf = g->bpf;
	LLVMTypeRef type = LLVMFunctionType(g->i64, &g->pointer, 1, 0);
	memset(g->values, 0, (g->p->checked.exprs.count + 1) * sizeof(*g->values));
	bpf->slot = bpf->cpu = bpf->identity = bpf->time = bpf->name = bpf->number = bpf->duration =
		NULL;
	memset(bpf->arguments, 0, sizeof(bpf->arguments));
	bpf->out = NULL;
	bpf->begun = NULL;
	memset(g->texts, 0, sizeof(g->texts));
	snprintf(symbol, sizeof(symbol), "fay_%s", section);
	g->function = LLVMAddFunction(g->module, symbol, type);
	LLVMSetSection(g->function, section);
	g->event = LLVMGetParam(g->function, 0);
	fay_codegen_continue(g, fay_codegen_block(g, "entry"));
	bpf->buffer =
		LLVMBuildAlloca(g->builder, LLVMArrayType2(g->i64, FAY_COMM_SIZE / 8), "buffer");
	g->leave = fay_codegen_block(g, "leave");
}

/* What decides whether the event is one that is asked for, and what is needed of its beginning. */
static bool generate_event(struct fay_codegen *g)
{
	struct fay_codegen_bpf *bpf = g->bpf;
	bool ended = g->p->checked.uses_duration;
	if (bpf->role == ROLE_TRACEPOINT || bpf->role == ROLE_FUNCTION || bpf->role == ROLE_TIMER ||
	    bpf->role == ROLE_TRAP)
		bpf->name = fay_codegen_i64(g, fay_name_hash(bpf->point));
	else
		require_syscall(g);
	if (bpf->role == ROLE_FUNCTION && ended)
		take_call(g);
	if (!fay_bpf_require_process(g) || (bpf->trap && !fay_bpf_require_program(g)))
		return false;
	if (bpf->trap)
		count_trap(g);
	if (bpf->trap && bpf->trap->kind == FAY_TRAP_CALL) {
		note_call(g);
		return true;
	}
	if (bpf->trap && bpf->trap->kind == FAY_TRAP_END)
		require_end(g);
	if (bpf->role == ROLE_START) {
		note_start(g);
		return true;
	}
	if (bpf->role == ROLE_EXECUTE) {
		fay_bpf_note_executed(g);
		return true;
	}
	if (bpf->role == ROLE_EXIT && ended)
		take_start(g);
	if (bpf->role == ROLE_EXIT && fay_bpf_notes_executed(g->p))
		fay_bpf_take_executed(g);
	fay_codegen_body(g);
	return true;
}

bool fay_bpf_program(struct fay_codegen *g, const char *section)
{
	struct fay_codegen_bpf *bpf = g->bpf;
	bool fine = true;
	begin(g, section);
	LLVMBasicBlockRef leave = g->leave;
	if (bpf->role == ROLE_FORK)
		fine = fay_bpf_note_child(g);
	else if (bpf->role == ROLE_CALL)
		note_call(g);
	else
		fine = generate_event(g);
	if (bpf->out) {
		LLVMBuildBr(g->builder, bpf->out);
		fay_codegen_continue(g, leave);
	}
	LLVMBuildRet(g->builder, fay_codegen_i64(g, 0));
	return fine;
}
