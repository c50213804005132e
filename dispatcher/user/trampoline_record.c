/* SPDX-License-Identifier: MIT */
/*
 * A call's record (records.c) in the trampolines, and what runs where the runtime ends one.
 *
 *   home:
 *	mov  records(%rsi), %rdi
 *	lea  frame(%rsp), %rax                where the return address is: the call's slot
 *	imul $multiplier, %rax, %rdx; shr $25, %rdx; and $mask, %edx
 *	add  %rdx, %rdi                       fay_record_home()
 *
 *   at the entry, behind the probes:
 *	(home); cmpq $0, (%rdi); jne aside    aside: runtime.begin, rdi = another place
 *   done: mov  %rax, (%rdi) first: from here on the place is taken, also for a signal handler
 *		[arguments, caller -> kept(%rdi)] [rdtsc; mov %rax, cycles(%rdi)] only for durations
 *		lea watched, %rax; mov %rax, watched(%rdi)
 *
 *   in front of a ret, before the probes: (home); cmp %rax, (%rdi); jne aside aside: runtime.end
 *     does all that is to be done, also for calls that wait at the slot [kept(%rdi) -> event]
 *     [rdtsc; sub cycles(%rdi), %rax; ... -> event.duration] movq $0, watched(%rdi); movq $0,
 *     (%rdi)
 *
 *   in front of a jump to another function:
 *	lea  frame(%rsp), %rax; mov target_at(%rsp), %rdi; call runtime.jump
 *
 * The functions of enum fay_sweep note the stack pointer at their entry, and call runtime.sweep in
 * front of each exit; at the entry, too, if another one's exit was not seen.
 */
#include "trampoline_private.h"

#include <string.h>

enum {
	RECORD_CYCLES = offsetof(struct fay_record, cycles),
	RECORD_WATCHED = offsetof(struct fay_record, watched),
	RECORD_KEPT = offsetof(struct fay_wide_record, kept),
	/* from the address that the stub's call leaves */
	STUB_WATCHED = -FAY_STUB_CALL - FAY_STUB_NAMES + 24,
};

static const struct fay_runtime_header *runtime_header(void)
{
	return (const void *)fay_runtime_blob;
}

/* What is read when calls end. */
static uint32_t fields_at_end(const struct fay_trampoline_spec *spec)
{
	uint32_t fields = 0;

	for (size_t i = 0; i < spec->probe_count; i++)
		if (fay_trampoline_watches(spec->probes[i].facts))
			fields |= spec->probes[i].facts->event_fields;
	return fields;
}

/* One of FAY_FIELDS_KEPT: where it lies in struct fay_kept, and in the event. */
static int32_t kept_at(unsigned bit)
{
	return 1u << bit & FAY_FIELD_CALLER ? (int32_t)offsetof(struct fay_kept, caller)
					    : 8 * (int32_t)bit;
}

static int32_t event_at(unsigned bit)
{
	return 1u << bit & FAY_FIELD_CALLER ? (int32_t)offsetof(struct fay_event, caller)
					    : 8 * (int32_t)bit;
}

/* From disp(%base) to the event, through rax. */
static void emit_kept(struct fay_emitter *e, const struct fay_part *part, unsigned base,
		      int32_t disp)
{
	for (uint32_t left = part->fields & FAY_FIELDS_KEPT; left; left &= left - 1) {
		unsigned bit = (unsigned)__builtin_ctz(left);

		fay_emit_load64(e, FAY_RAX, base, disp + kept_at(bit));
		fay_emit_store64(e, FAY_RSP, event_at(bit), FAY_RAX);
	}
}

uint32_t fay_record_uses(const struct fay_trampoline_spec *spec)
{
	return spec->records ? FAY_BIT(FAY_RDI) | FAY_BIT(FAY_RAX) | FAY_BIT(FAY_RDX) : 0;
}

void fay_record_load_target(struct fay_emitter *e, const struct fay_jump_target *target)
{
	if (!target->load_size) {
		fay_emit_movabs(e, FAY_RAX, target->address);
		return;
	}
	if (!target->rip_at) {
		fay_emit_bytes(e, target->load, target->load_size);
		return;
	}
	fay_emit_bytes(e, target->load, target->rip_at);
	fay_emit_rel32(e, target->address, 0);
}

void fay_record_target(struct fay_emitter *e, const struct fay_part *part)
{
	if (!part->spec->records || part->spec->role != FAY_ROLE_JUMP)
		return;
	fay_record_load_target(e, &part->spec->target);
	fay_emit_store64(e, FAY_RSP, part->target_at, FAY_RAX);
}

static void emit_home(struct fay_emitter *e, const struct fay_part *part)
{
	const unsigned bits = part->spec->wide ? FAY_WIDE_RECORD_BITS : FAY_RECORD_BITS;
	const uint8_t shr_rdx_and_edx[] = { 0x48, 0xc1, 0xea, FAY_RECORD_HASH_SHIFT - bits,
					    0x81, 0xe2 };
	static const uint8_t imul_rax_rdx[] = { 0x48, 0x69, 0xd0 },
			     add_rdx_rdi[] = { 0x48, 0x01, 0xd7 };

	fay_emit_load64(e, FAY_RDI, FAY_RSI, FAY_AT_RECORDS);
	fay_emit_lea(e, FAY_RAX, FAY_RSP, part->frame);
	fay_emit_bytes(e, imul_rax_rdx, sizeof(imul_rax_rdx));
	fay_emit_imm32(e, FAY_THREAD_HASH_MULTIPLIER);
	fay_emit_bytes(e, shr_rdx_and_edx, sizeof(shr_rdx_and_edx));
	fay_emit_imm32(e, (FAY_RECORDS - 1) << bits);
	fay_emit_bytes(e, add_rdx_rdi, sizeof(add_rdx_rdi));
}

/* rax or rdx = address of the function's struct fay_watched */
static void emit_watched(struct fay_emitter *e, const struct fay_part *part, unsigned to)
{
	if (!part->spec->shared) {
		fay_emit_rip_relative(e, 0x8d, to, part->spec->watched); /* lea */
		return;
	}
	fay_emit_load64(e, to, FAY_RSP, part->frame - part->pushed);
	fay_emit_load64(e, to, to, STUB_WATCHED);
}

static void store_zero(struct fay_emitter *e, int32_t at)
{
	fay_emit_memory(e, true, 0xc7, 0, FAY_RDI, at);
	fay_emit_imm32(e, 0);
}

/* What the stack pointer will be behind the exit. */
static void emit_sweep(struct fay_emitter *e, const struct fay_part *part)
{
	fay_emit_lea(e, FAY_RAX, FAY_RSP,
		     part->frame + (part->spec->role == FAY_ROLE_RETURN ? 8 : 0));
	fay_emit_call(e, part->spec->runtime + runtime_header()->sweep);
}

/* rax = slot */
static void note_sweep(struct fay_emitter *e, const struct fay_trampoline_spec *spec)
{
	size_t none;

	if (!spec->sweeps)
		return;
	fay_emit_memory(e, true, 0x83, 7, FAY_RSI, FAY_AT_SWEPT_FROM); /* cmpq $0 */
	fay_emit_byte(e, 0);
	none = fay_emit_jump_if(e, FAY_IF_EQUAL);
	fay_emit_call(e, spec->runtime + runtime_header()->sweep);
	fay_emit_land(e, none);
	if (spec->sweeps == FAY_SWEEP_CATCH)
		return;
	fay_emit_store64(e, FAY_RSI, FAY_AT_SWEPT_FROM, FAY_RAX);
	if (spec->sweeps != FAY_SWEEP_LONGJMP)
		return;
	fay_emit_memory(e, true, 0x83, 1, FAY_RSI, FAY_AT_SWEPT_FROM); /* orq */
	fay_emit_byte(e, FAY_SWEPT_PERHAPS);
}

void fay_record_end(struct fay_emitter *e, const struct fay_part *part,
		    struct fay_record_code *code)
{
	const struct fay_trampoline_spec *spec = part->spec;

	if (!spec->records || spec->role == FAY_ROLE_ENTRY)
		return;
	if (spec->sweeps)
		emit_sweep(e, part);
	if (spec->role == FAY_ROLE_JUMP) {
		fay_emit_lea(e, FAY_RAX, FAY_RSP, part->frame);
		fay_emit_load64(e, FAY_RDI, FAY_RSP, part->target_at);
		fay_emit_call(e, spec->runtime + runtime_header()->jump);
		return;
	}
	emit_home(e, part);
	fay_emit_memory(e, true, 0x39, FAY_RAX, FAY_RDI, 0);
	code->aside = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	emit_kept(e, part, FAY_RDI, RECORD_KEPT);
	if (part->fields & FAY_FIELD_DURATION)
		fay_fields_duration(e, part, FAY_RDI, RECORD_CYCLES);
	store_zero(e, RECORD_WATCHED);
	store_zero(e, 0);
}

/* Where part->saved has a register's value, from rsp. Those that are pushed first lie highest. */
static int32_t saved_at(const struct fay_part *part, unsigned reg)
{
	return part->area + 8 * __builtin_popcount(part->saved & (FAY_BIT(reg) - 1));
}

/* The call's beginning to its record, from the registers or where they were pushed. */
static void keep(struct fay_emitter *e, const struct fay_part *part)
{
	uint32_t kept = fields_at_end(part->spec) & FAY_FIELDS_KEPT;

	for (; kept; kept &= kept - 1) {
		unsigned bit = (unsigned)__builtin_ctz(kept), from = FAY_RDX;

		if (1u << bit & FAY_FIELD_CALLER)
			fay_emit_load64(e, from, FAY_RSP, part->frame);
		else if (part->saved & FAY_BIT(fay_argument_register(part->spec, bit)))
			fay_emit_load64(e, from, FAY_RSP,
					saved_at(part, fay_argument_register(part->spec, bit)));
		else
			from = fay_argument_register(part->spec, bit);
		fay_emit_store64(e, FAY_RDI, RECORD_KEPT + kept_at(bit), from);
	}
}

void fay_record_begin(struct fay_emitter *e, const struct fay_part *part,
		      struct fay_record_code *code)
{
	if (!part->spec->records || part->spec->role != FAY_ROLE_ENTRY)
		return;
	emit_home(e, part);
	note_sweep(e, part->spec);
	fay_emit_memory(e, true, 0x83, 7, FAY_RDI, 0); /* cmpq $0 */
	fay_emit_byte(e, 0);
	code->aside = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	code->done = e->size;
	fay_emit_store64(e, FAY_RDI, 0, FAY_RAX);
	keep(e, part);
	if (fields_at_end(part->spec) & FAY_FIELD_DURATION) {
		fay_fields_rdtsc(e);
		fay_emit_store64(e, FAY_RDI, RECORD_CYCLES, FAY_RAX);
	}
	emit_watched(e, part, FAY_RAX);
	fay_emit_store64(e, FAY_RDI, RECORD_WATCHED, FAY_RAX);
}

void fay_record_aside(struct fay_emitter *e, const struct fay_part *part,
		      const struct fay_record_code *code, size_t restore)
{
	const struct fay_trampoline_spec *spec = part->spec;

	if (!code->aside)
		return;
	fay_emit_land(e, code->aside);
	if (spec->role == FAY_ROLE_ENTRY) {
		emit_watched(e, part, FAY_RDX);
		fay_emit_call(e, spec->runtime + runtime_header()->begin);
		fay_emit_jump(e, e->address + code->done);
		return;
	}
	fay_emit_load64(e, FAY_RDI, FAY_RSP, saved_at(part, FAY_RAX));
	fay_emit_load64(e, FAY_RDX, FAY_RSP, saved_at(part, FAY_RDX));
	fay_emit_call(e, spec->runtime + runtime_header()->end);
	fay_emit_jump(e, e->address + restore);
}

/* A routine of the runtime's that looks at the program's rbp, where rbp leads to all registers. */
static void call_with_rbp(struct fay_emitter *e, uint64_t routine)
{
	fay_emit_push(e, FAY_RBP);
	fay_emit_load64(e, FAY_RBP, FAY_RBP, fay_offset_saved(FAY_RBP));
	fay_emit_call(e, routine);
	fay_emit_pop(e, FAY_RBP);
}

/* Likewise, where rbp leads to all registers; through rax. */
static void keep_carefully(struct fay_emitter *e, const struct fay_trampoline_spec *spec)
{
	uint32_t kept = fields_at_end(spec) & FAY_FIELDS_KEPT;

	for (; kept; kept &= kept - 1) {
		unsigned bit = (unsigned)__builtin_ctz(kept);
		unsigned from =
			1u << bit & FAY_FIELD_CALLER ? FAY_RSP : fay_argument_register(spec, bit);

		fay_emit_load64(e, FAY_RAX, FAY_RBP, fay_offset_saved(from));
		fay_emit_store64(e, FAY_RDI, RECORD_KEPT + kept_at(bit), FAY_RAX);
	}
}

void fay_record_carefully(struct fay_emitter *e, const struct fay_trampoline_spec *spec)
{
	const struct fay_runtime_header *runtime = runtime_header();

	if (spec->sweeps && spec->role != FAY_ROLE_ENTRY) {
		fay_emit_lea(e, FAY_RAX, FAY_RBP,
			     fay_offset_saved(FAY_RSP) + (spec->role == FAY_ROLE_RETURN ? 8 : 0));
		fay_emit_call(e, spec->runtime + runtime->sweep);
	}
	fay_emit_lea(e, FAY_RAX, FAY_RBP, fay_offset_saved(FAY_RSP));
	switch (spec->role) {
	case FAY_ROLE_ENTRY:
		note_sweep(e, spec);
		fay_emit_movabs(e, FAY_RDX, spec->watched);
		fay_emit_call(e, spec->runtime + runtime->begin);
		fay_emit_store64(e, FAY_RDI, 0, FAY_RAX);
		fay_emit_store64(e, FAY_RDI, RECORD_WATCHED, FAY_RDX);
		keep_carefully(e, spec);
		fay_fields_rdtsc(e);
		fay_emit_store64(e, FAY_RDI, RECORD_CYCLES, FAY_RAX);
		break;
	case FAY_ROLE_RETURN:
		fay_emit_load64(e, FAY_RDI, FAY_RBP, fay_offset_saved(FAY_RAX));
		fay_emit_load64(e, FAY_RDX, FAY_RBP, fay_offset_saved(FAY_RDX));
		call_with_rbp(e, spec->runtime + runtime->end);
		break;
	case FAY_ROLE_JUMP:
		fay_emit_load64(e, FAY_RDI, FAY_RSP, 0);
		call_with_rbp(e, spec->runtime + runtime->jump);
		break;
	}
}

/* What a function returned, to the event: rcx leads to struct fay_returned; rdx is the slot. */
static void emit_returned(struct fay_emitter *e, const struct fay_part *part)
{
	static const struct {
		uint32_t field;
		int32_t from, to;
	} values[] = {
		{ FAY_FIELD_RETVAL, offsetof(struct fay_returned, rax),
		  offsetof(struct fay_event, retval) },
		{ FAY_FIELD_RETVAL2, offsetof(struct fay_returned, rdx),
		  offsetof(struct fay_event, retval2) },
		{ FAY_FIELD_RETVAL_FLOAT, offsetof(struct fay_returned, xmm0),
		  offsetof(struct fay_event, retval_float) },
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (part->fields & values[i].field) {
			fay_emit_load64(e, FAY_RAX, FAY_RCX, values[i].from);
			fay_emit_store64(e, FAY_RSP, values[i].to, FAY_RAX);
		}
	if (part->fields & FAY_FIELD_REGISTERS) {
		fay_emit_load64(e, FAY_RAX, FAY_RCX, offsetof(struct fay_returned, rbp));
		fay_fields_frame(e, FAY_RDX, FAY_RAX);
	}
}

/* void routine(uint64_t cycles, void *local, uint64_t slot, const struct fay_returned *, stub,
 * const struct fay_kept *), called by records.c [through the stub]. */
void fay_routine_write(struct fay_emitter *e, const struct fay_trampoline_spec *spec, uint32_t kind)
{
	struct fay_part part = fay_part_plan(spec, 1u << kind, 0);
	struct fay_run run = { 0 };
	int32_t area;
	size_t restore;

	/* a C function: the caller-saved registers are its own, the others no probe changes */
	part.saved = 0;
	part.temporary = FAY_RAX;
	part.frame = 0;
	area = (part.area + 15) / 16 * 16 + 8;
	fay_emit_lea(e, FAY_RSP, FAY_RSP, -area);
	if (part.fields & FAY_FIELD_STACK_POINTER)
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, stack_pointer), FAY_RDX);
	if (kind == FAY_PROBE_RETURN)
		emit_returned(e, &part);
	if (part.fields & FAY_FIELD_DURATION) { /* which changes rdx */
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, duration), FAY_RDI);
		fay_fields_duration(e, &part, FAY_RSP, offsetof(struct fay_event, duration));
	}
	emit_kept(e, &part, FAY_R9, 0);
	if (spec->shared)
		fay_fields_names(e, &part, FAY_R8);
	fay_part_run(e, &part, &run, !spec->unguarded);
	restore = e->size;
	fay_emit_lea(e, FAY_RSP, FAY_RSP, area);
	fay_emit_byte(e, 0xc3);
	fay_part_run_aside(e, &part, &run, restore);
}

bool fay_routine_emit(const struct fay_trampoline_spec *spec, uint32_t kind, uint8_t *code,
		      size_t capacity, size_t *size)
{
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = spec->address };

	if (fay_spec_has_kind(spec, 1u << kind))
		fay_routine_write(&e, spec, kind);
	*size = e.size;
	return !e.failed;
}
