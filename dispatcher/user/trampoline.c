/* SPDX-License-Identifier: MIT */
/*
 * The trampoline generator. What it writes, for one point (parts in brackets only where the probes need them):
 *
 *	push  each register that is changed below                  facts.clobbered_gprs, arguments, own temporaries
 *	[lea  -area(%rsp), %rsp]                                   the event, a place for LOCAL, alignment
 *	[mov  argument registers -> event]                         while they still hold the program's values
 *	mov %fs:0, %rsi (or rdfsbase %rsi)                         the thread
 *	imul $multiplier, %rsi, %t; inc %rsi                       its entry in the thread table
 *	shr $47, %t; and $-16, %t; add table(%rip), %t
 *	cmp %rsi, (%t); jne slow; mov 8(%t), %rsi                  rsi = LOCAL
 *   have:
 *	cmpl $0, busy(%rsi); jne reentrant; movl $1, busy(%rsi)
 *	[other event fields]
 *	[vector registers and MXCSR -> stack; default MXCSR]       vectors.c
 *	[lea event, %rdi] [movabs $global, %rdx] call probe        for each probe; with rsp aligned if it asks for that
 *	[vector registers and MXCSR as they were]
 *	movl $0, busy(%rsi)
 *   restore:
 *	[lea  area(%rsp), %rsp]
 *	pop   ...
 *   displaced:
 *	(displaced instructions and the jump back: the loader's)
 *   slow:
 *	call runtime.slow; test %rsi, %rsi; jne have; jmp restore
 *   reentrant:
 *	incq lost_reentrant(%rsi); jmp restore
 *
 * Flags are dead at a function's entry (System V ABI; gcc's -fipa-ra does not keep them across calls either). Everything else is kept: r10 and r11
 * too, which callers compiled with -fipa-ra may rely on. At entry rsp is 8 modulo 16, and so it is at each probe's entry.
 * Nothing below rsp is live at entry, so pushing is safe.
 *
 * rdfsbase alone takes 3 cycles, but among stores it held up the pipeline for some 15 on the AMD machine where it was tried (5.8 of 8.0 ns added a
 * call): so the thread pointer's own copy at fs:0 (System V ABI, x86-64 TLS) is read where the loader found it right in every thread.
 *
 * Cost of an entry count: 19 instructions over the bare jump, no locked ones, no branch that is ever mispredicted in steady state.
 */
#include "trampoline.h"

#include <assert.h>
#include <string.h>

#include "fay/event.h"
#include "fay/shm.h"
#include "emit.h"
#include "runtime.h"
#include "vectors.h"

enum {
	SLOT_BUSY = (int)offsetof(struct fay_slot_header, busy) - (int)FAY_SLOT_HEADER,
	SLOT_PID = (int)offsetof(struct fay_slot_header, pid) - (int)FAY_SLOT_HEADER,
	SLOT_LOST = (int)offsetof(struct fay_slot_header, lost_reentrant) - (int)FAY_SLOT_HEADER,
};
#define BIT(reg) (1u << (reg))
#define SYSCALL_CLOBBERS (BIT(FAY_RAX) | BIT(FAY_RCX) | BIT(FAY_R11))

/* What one trampoline needs, gathered over its probes. */
struct plan {
	uint32_t saved;  /* registers pushed */
	uint32_t fields; /* of the event */
	unsigned temporary;
	bool spill_local; /* some probe clobbers rsi */
	int32_t local_at; /* rsp offset where LOCAL is kept, if spilled */
	struct fay_vectors vectors;
	int32_t vectors_at; /* rsp offset where they are kept */
	int32_t area;     /* bytes between the pushes and rsp */
	int32_t frame;    /* bytes from rsp at the probes' calls to rsp at the function's entry */
};

static struct plan make_plan(const struct fay_trampoline_spec *spec)
{
	struct plan plan = { .saved = BIT(FAY_RSI) };
	uint32_t others;

	for (size_t i = 0; i < spec->probe_count; i++) {
		const struct fay_probe_facts *facts = spec->probes[i].facts;

		plan.fields |= facts->event_fields;
		plan.saved |= facts->clobbered_gprs | facts->arguments_used;
		if (facts->event_fields)
			plan.saved |= BIT(FAY_RDI);
		plan.spill_local |= (facts->clobbered_gprs & BIT(FAY_RSI)) != 0;
		if (facts->aligned_stack)
			plan.saved |= BIT(FAY_RAX);
		fay_vectors_add(&plan.vectors, facts);
	}
	plan.saved &= ~BIT(FAY_RSP);
	if (plan.fields & (FAY_FIELD_TIME | FAY_FIELD_CYCLES))
		plan.saved |= BIT(FAY_RAX) | BIT(FAY_RDX);
	if (plan.fields & FAY_FIELD_COMM || (plan.fields & FAY_FIELD_TID && spec->tid_offset < 0))
		plan.saved |= SYSCALL_CLOBBERS;
	if (plan.fields & FAY_FIELD_COMM)
		plan.saved |= BIT(FAY_RDI);
	others = plan.saved & ~BIT(FAY_RSI);
	if (!others)
		plan.saved |= others = BIT(FAY_RDI);
	plan.temporary = (unsigned)__builtin_ctz(others);

	if (plan.fields)
		plan.area += sizeof(struct fay_event);
	plan.local_at = plan.area;
	if (plan.spill_local)
		plan.area += 8;
	plan.vectors_at = plan.area;
	plan.area += fay_vectors_size(&plan.vectors);
	plan.frame = plan.area + 8 * __builtin_popcount(plan.saved);
	if (plan.frame % 16 != 8) {
		plan.area += 8;
		plan.frame += 8;
	}
	return plan;
}

/* Arguments go first: later steps change the registers. */
static void emit_arguments(struct fay_emitter *e, const struct plan *plan)
{
	static const uint8_t argument[6] = { FAY_RDI, FAY_RSI, FAY_RDX, FAY_RCX, FAY_R8, FAY_R9 };

	for (unsigned i = 0; i < 6; i++)
		if (plan->fields & FAY_FIELD_ARG0 << i)
			fay_emit_store64(e, FAY_RSP, (int32_t)(offsetof(struct fay_event, arg) + 8 * i), argument[i]);
}

static void emit_time(struct fay_emitter *e, const struct plan *plan, uint64_t config)
{
	static const uint8_t rdtsc_to_rax[] = { 0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0 };
	static const uint8_t shrd_rax_rdx_32[] = { 0x48, 0x0f, 0xac, 0xd0, 0x20 };

	if (!(plan->fields & (FAY_FIELD_TIME | FAY_FIELD_CYCLES)))
		return;
	fay_emit_bytes(e, rdtsc_to_rax, sizeof(rdtsc_to_rax));
	if (plan->fields & FAY_FIELD_CYCLES)
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, cycles), FAY_RAX);
	if (!(plan->fields & FAY_FIELD_TIME))
		return;
	/* mul multiplier(%rip): rdx:rax; bits 32..95 of it are the nanoseconds. */
	fay_emit_rip_relative(e, 0xf7, 4, config + offsetof(struct fay_runtime_config, time_multiplier));
	fay_emit_bytes(e, shrd_rax_rdx_32, sizeof(shrd_rax_rdx_32));
	fay_emit_rip_relative(e, 0x03, FAY_RAX, config + offsetof(struct fay_runtime_config, time_offset));
	fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, time), FAY_RAX);
}

static void emit_tid(struct fay_emitter *e, const struct fay_trampoline_spec *spec, unsigned t)
{
	if (spec->tid_offset >= 0) {
		/* mov %fs:disp32, %t */
		fay_emit_byte(e, 0x64);
		if (t >= 8)
			fay_emit_byte(e, 0x44);
		fay_emit_byte(e, 0x8b);
		fay_emit_byte(e, 0x04 | (t & 7) << 3);
		fay_emit_byte(e, 0x25);
		fay_emit_imm32(e, (uint32_t)spec->tid_offset);
	} else {
		/* mov $__NR_gettid, %eax; syscall */
		static const uint8_t gettid[] = { 0xb8, 186, 0, 0, 0, 0x0f, 0x05 };

		fay_emit_bytes(e, gettid, sizeof(gettid));
		t = FAY_RAX;
	}
	fay_emit_store32(e, FAY_RSP, offsetof(struct fay_event, tid), t);
}

/* The per-CPU segment's limit holds the CPU number in bits 0..11: what the vDSO's getcpu reads (Linux, asm/segment.h). */
static void emit_cpu(struct fay_emitter *e, unsigned t)
{
	unsigned high = t >= 8;

	if (high)
		fay_emit_byte(e, 0x41);
	fay_emit_byte(e, 0xb8 + (t & 7)); /* mov $selector, %t */
	fay_emit_imm32(e, 0x7b);
	if (high)
		fay_emit_byte(e, 0x45);
	fay_emit_byte(e, 0x0f); /* lsl %t, %t */
	fay_emit_byte(e, 0x03);
	fay_emit_byte(e, 0xc0 | (t & 7) << 3 | (t & 7));
	if (high)
		fay_emit_byte(e, 0x41);
	fay_emit_byte(e, 0x81); /* and $0xfff, %t */
	fay_emit_byte(e, 0xe0 | (t & 7));
	fay_emit_imm32(e, 0xfff);
	fay_emit_store32(e, FAY_RSP, offsetof(struct fay_event, cpu), t);
}

static void emit_fields(struct fay_emitter *e, const struct plan *plan, const struct fay_trampoline_spec *spec,
			const struct fay_runtime_header *runtime)
{
	unsigned t = plan->temporary;

	emit_time(e, plan, spec->runtime + runtime->config);
	if (plan->fields & FAY_FIELD_RETVAL)
		e->failed = true; /* the verifier lets entry probes read no return value */
	if (plan->fields & FAY_FIELD_FUNCTION) {
		fay_emit_movabs(e, t, spec->function);
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, function), t);
	}
	if (plan->fields & FAY_FIELD_MODULE) {
		fay_emit_movabs(e, t, spec->module);
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, module), t);
	}
	if (plan->fields & FAY_FIELD_PID) {
		fay_emit_load32(e, t, FAY_RSI, SLOT_PID);
		fay_emit_store32(e, FAY_RSP, offsetof(struct fay_event, pid), t);
	}
	if (plan->fields & FAY_FIELD_TID)
		emit_tid(e, spec, t);
	if (plan->fields & FAY_FIELD_CPU)
		emit_cpu(e, t);
	if (plan->fields & FAY_FIELD_RESERVED) {
		fay_emit_memory(e, false, 0xc7, 0, FAY_RSP, offsetof(struct fay_event, reserved));
		fay_emit_imm32(e, 0);
	}
	if (plan->fields & FAY_FIELD_STACK_POINTER) {
		fay_emit_lea(e, t, FAY_RSP, plan->frame);
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, stack_pointer), t);
	}
	if (plan->fields & FAY_FIELD_COMM) {
		fay_emit_lea(e, FAY_RDI, FAY_RSP, offsetof(struct fay_event, comm));
		fay_emit_call(e, spec->runtime + runtime->comm);
	}
}

/* The traced program may have misaligned its stack; a probe that spills vectors in aligned form relies on it. rax is free here. */
static void emit_call(struct fay_emitter *e, uint64_t code, bool align)
{
	static const uint8_t aligned[] = { 0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x50 }; /* mov %rsp, %rax; and $-16, %rsp; push %rax twice */

	if (align)
		fay_emit_bytes(e, aligned, sizeof(aligned));
	fay_emit_call(e, code);
	if (align)
		fay_emit_pop(e, FAY_RSP);
}

static void emit_probes(struct fay_emitter *e, const struct plan *plan, const struct fay_trampoline_spec *spec)
{
	bool have_local = true;

	if (plan->spill_local)
		fay_emit_store64(e, FAY_RSP, plan->local_at, FAY_RSI);
	fay_vectors_save(e, &plan->vectors, plan->vectors_at);
	for (size_t i = 0; i < spec->probe_count; i++) {
		const struct fay_probe_facts *facts = spec->probes[i].facts;

		if (!have_local)
			fay_emit_load64(e, FAY_RSI, FAY_RSP, plan->local_at);
		if (facts->event_fields || facts->arguments_used & BIT(FAY_RDI))
			fay_emit_lea(e, FAY_RDI, FAY_RSP, 0);
		if (facts->arguments_used & BIT(FAY_RDX))
			fay_emit_movabs(e, FAY_RDX, spec->global);
		emit_call(e, spec->probes[i].code, facts->aligned_stack);
		have_local = !(facts->clobbered_gprs & BIT(FAY_RSI));
	}
	if (!have_local)
		fay_emit_load64(e, FAY_RSI, FAY_RSP, plan->local_at);
	fay_vectors_restore(e, &plan->vectors, plan->vectors_at);
}

/* mov %fs:0, %rsi or rdfsbase %rsi; ...; leaves LOCAL in rsi. Returns the place of the jump to the slow path. */
static size_t emit_lookup(struct fay_emitter *e, const struct fay_trampoline_spec *spec, unsigned t, uint64_t config)
{
	static const uint8_t rdfsbase_rsi[] = { 0xf3, 0x48, 0x0f, 0xae, 0xc6 };
	static const uint8_t mov_fs0_rsi[] = { 0x64, 0x48, 0x8b, 0x34, 0x25, 0, 0, 0, 0 };
	static const uint8_t inc_rsi[] = { 0x48, 0xff, 0xc6 };
	unsigned rex_b = t >= 8;
	size_t slow;

	if (spec->thread_pointer)
		fay_emit_bytes(e, mov_fs0_rsi, sizeof(mov_fs0_rsi));
	else
		fay_emit_bytes(e, rdfsbase_rsi, sizeof(rdfsbase_rsi));
	fay_emit_byte(e, 0x48 | rex_b << 2); /* imul $imm32, %rsi, %t */
	fay_emit_byte(e, 0x69);
	fay_emit_byte(e, 0xc0 | (t & 7) << 3 | FAY_RSI);
	fay_emit_imm32(e, FAY_THREAD_HASH_MULTIPLIER);
	fay_emit_bytes(e, inc_rsi, sizeof(inc_rsi));
	fay_emit_byte(e, 0x48 | rex_b); /* shr $(64 - bits - 4), %t */
	fay_emit_byte(e, 0xc1);
	fay_emit_byte(e, 0xe8 | (t & 7));
	fay_emit_byte(e, 64 - FAY_THREAD_TABLE_BITS - 4);
	fay_emit_byte(e, 0x48 | rex_b); /* and $-16, %t */
	fay_emit_byte(e, 0x83);
	fay_emit_byte(e, 0xe0 | (t & 7));
	fay_emit_byte(e, 0xf0);
	fay_emit_rip_relative(e, 0x03, t, config + offsetof(struct fay_runtime_config, thread_table));
	fay_emit_memory(e, true, 0x39, FAY_RSI, t, offsetof(struct fay_thread_entry, key));
	slow = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	fay_emit_load64(e, FAY_RSI, t, offsetof(struct fay_thread_entry, local));
	return slow;
}

static void set_busy(struct fay_emitter *e, uint32_t value)
{
	fay_emit_memory(e, false, 0xc7, 0, FAY_RSI, SLOT_BUSY);
	fay_emit_imm32(e, value);
}

size_t fay_trampoline_emit(const struct fay_trampoline_spec *spec, size_t displaced_room, uint8_t *code,
			   size_t capacity, size_t *displaced)
{
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = spec->address };
	struct plan plan = make_plan(spec);
	size_t slow, reentrant, have, restore;

	for (int reg = 15; reg >= 0; reg--)
		if (plan.saved & BIT(reg))
			fay_emit_push(&e, (unsigned)reg);
	if (plan.area == 8)
		fay_emit_push(&e, FAY_RSI); /* shorter than lea; the value does not matter */
	else if (plan.area)
		fay_emit_lea(&e, FAY_RSP, FAY_RSP, -plan.area);
	emit_arguments(&e, &plan);
	slow = emit_lookup(&e, spec, plan.temporary, spec->runtime + runtime->config);
	have = e.size;
	fay_emit_memory(&e, false, 0x83, 7, FAY_RSI, SLOT_BUSY); /* cmpl $0 */
	fay_emit_byte(&e, 0);
	reentrant = fay_emit_jump_if(&e, FAY_IF_NOT_EQUAL);
	set_busy(&e, 1);
	emit_fields(&e, &plan, spec, runtime);
	emit_probes(&e, &plan, spec);
	set_busy(&e, 0);
	restore = e.size;
	if (plan.area == 8)
		fay_emit_pop(&e, FAY_RSI); /* rsi is always among the saved: its own pop follows */
	else if (plan.area)
		fay_emit_lea(&e, FAY_RSP, FAY_RSP, plan.area);
	for (unsigned reg = 0; reg < 16; reg++)
		if (plan.saved & BIT(reg))
			fay_emit_pop(&e, reg);
	*displaced = e.size;
	for (size_t i = 0; i < displaced_room; i++)
		fay_emit_byte(&e, 0xcc);

	fay_emit_land(&e, slow);
	fay_emit_call(&e, spec->runtime + runtime->slow);
	fay_emit_byte(&e, 0x48); /* test %rsi, %rsi */
	fay_emit_byte(&e, 0x85);
	fay_emit_byte(&e, 0xf6);
	fay_emit_byte(&e, 0x0f);
	fay_emit_byte(&e, 0x80 | FAY_IF_NOT_EQUAL);
	fay_emit_rel32(&e, spec->address + have, 0);
	fay_emit_jump(&e, spec->address + restore);

	fay_emit_land(&e, reentrant);
	fay_emit_memory(&e, true, 0xff, 0, FAY_RSI, SLOT_LOST); /* incq */
	fay_emit_jump(&e, spec->address + restore);
	return e.failed ? 0 : e.size;
}

const char *fay_trampoline_refusal(const struct fay_probe_facts *facts)
{
	const uint32_t callee_saved = BIT(FAY_RBX) | BIT(FAY_RBP) | BIT(FAY_R12) | BIT(FAY_R13) |
				      BIT(FAY_R14) | BIT(FAY_R15);

	if (facts->kind != FAY_PROBE_ENTRY)
		return "is not an entry probe; only those can be installed so far";
	if (facts->event_fields & FAY_FIELD_RETVAL)
		return "reads the return value, which an entry probe does not have";
	if (facts->clobbered_gprs & callee_saved)
		return "does not restore the registers that the ABI says it must";
	return NULL;
}
