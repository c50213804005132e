/* SPDX-License-Identifier: MIT */
/*
 * The trampoline generator. What it writes, for one point (parts in brackets only where the probes
 * need them):
 *
 *	push  each register that is changed below facts.clobbered_gprs, arguments, own temporaries
 *	[lea  -area(%rsp), %rsp] the event, a place for LOCAL, alignment
 *	[mov  argument registers -> event] while they still hold the program's values
 *	mov %fs:0, %rsi (or rdfsbase %rsi)                         the thread
 *	imul $multiplier, %rsi, %t [; inc %rsi]                    its entry in the thread table
 *	shr $24, %t; and $0x7ffc0, %t; add table(%rip), %t
 *	cmp %rsi, (%t); jne slow; mov 8(%t), %rsi                  rsi = LOCAL
 *   have: cmpq $0, busy(%rsi); jne reentrant; mov %rsp, busy(%rsi) [other event fields] [vector
 *     registers and MXCSR -> stack; default MXCSR] vectors.c [lea event, %rdi] [movabs $global,
 *     %rdx] call probe for each probe; with rsp aligned if it asks for that [vector registers and
 *     MXCSR as they were] movq $0, busy(%rsi) [begin a record of the call: trampoline_record.c]
 *   restore:
 *	[lea  area(%rsp), %rsp]
 *	pop   ...
 *   displaced:
 *	(displaced instructions and the jump back, or the exit: the loader's)
 *   slow:
 *	call runtime.slow; test %rsi, %rsi; jne have; jmp restore
 *   reentrant:
 *	call runtime.busy; je have; incq lost_reentrant(%rsi); jmp restore
 *
 * In front of an exit it is the same, and the call's record is taken where `have` is.
 *
 * Flags are dead at a function's entry (System V ABI; gcc's -fipa-ra does not keep them across
 * calls either). Everything else is kept: r10 and r11 too, which callers compiled with -fipa-ra may
 * rely on. At entry rsp is 8 modulo 16, and so it is at each probe's entry. Nothing below rsp is
 * live at entry, so pushing is safe. All of this holds in front of a ret and of a jump to another
 * function, too.
 *
 * rdfsbase alone takes 3 cycles, but among stores it held up the pipeline for some 15 on the AMD
 * machine where it was tried (5.8 of 8.0 ns added a call): so the thread pointer's own copy at fs:0
 * (System V ABI, x86-64 TLS) is read where the loader found it right in every thread.
 *
 * Cost of an entry count: 19 instructions over the bare jump, no locked ones, no branch that is
 * ever mispredicted in steady state.
 */
#include "trampoline.h"

#include <string.h>

#include "trampoline_private.h"

#define SYSCALL_CLOBBERS (FAY_BIT(FAY_RAX) | FAY_BIT(FAY_RCX) | FAY_BIT(FAY_R11))
#define ENTRY_KINDS                                                                                \
	(1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_THREAD_BEGIN | 1u << FAY_PROBE_THREAD_END)
#define LEAVING_KINDS (1u << FAY_PROBE_RETURN | 1u << FAY_PROBE_EXCEPTION)

static bool runs_here(const struct fay_part *part, const struct fay_probe_facts *facts)
{
	return part->kinds >> facts->kind & 1;
}

bool fay_part_empty(const struct fay_part *part)
{
	for (size_t i = 0; i < part->spec->probe_count; i++)
		if (runs_here(part, part->spec->probes[i].facts))
			return false;
	return true;
}

struct fay_part fay_part_plan(const struct fay_trampoline_spec *spec, uint32_t kinds,
			      uint32_t saved)
{
	struct fay_part part = { .spec = spec, .kinds = kinds, .saved = saved | FAY_BIT(FAY_RSI) };
	uint32_t others;
	bool calls = false; /* inlined probes do without an aligned stack */

	for (size_t i = 0; i < spec->probe_count; i++) {
		const struct fay_probe_facts *facts = spec->probes[i].facts;

		if (!runs_here(&part, facts))
			continue;
		calls |= !spec->probes[i].inlined || spec->probes[i].leaves;
		part.fields |= facts->event_fields;
		part.saved |= facts->clobbered_gprs | facts->arguments_used;
		if (facts->event_fields)
			part.saved |= FAY_BIT(FAY_RDI);
		part.spill_local |= (facts->clobbered_gprs & FAY_BIT(FAY_RSI)) != 0;
		if (facts->aligned_stack)
			part.saved |= FAY_BIT(FAY_RAX);
		fay_vectors_add(&part.vectors, facts);
	}
	part.saved &= ~FAY_BIT(FAY_RSP);
	if (spec->cost || part.fields & (FAY_FIELD_TIME | FAY_FIELD_CYCLES | FAY_FIELD_DURATION))
		part.saved |= FAY_BIT(FAY_RAX) | FAY_BIT(FAY_RDX);
	if (part.fields & FAY_FIELD_TID && spec->tid_offset < 0)
		part.saved |= SYSCALL_CLOBBERS;
	if (part.fields & FAY_FIELD_COMM)
		part.saved |= FAY_BIT(FAY_RDI) | FAY_BIT(FAY_RAX);
	others = part.saved & ~FAY_BIT(FAY_RSI);
	if (!others)
		part.saved |= others = FAY_BIT(FAY_RDI);
	part.temporary = others & FAY_BIT(FAY_RDI) ? FAY_RDI : (unsigned)__builtin_ctz(others);

	part.area += (int32_t)fay_event_bytes(part.fields);
	part.local_at = part.area;
	if (part.spill_local)
		part.area += 8;
	part.target_at = part.area;
	if (spec->records && spec->role == FAY_ROLE_JUMP)
		part.area += 8;
	part.cost_at = part.area;
	if (spec->cost)
		part.area += 8;
	part.vectors_at = part.area;
	part.area += fay_vectors_size(&part.vectors);
	part.pushed = spec->shared ? 8 : 0;
	part.frame = part.area + 8 * __builtin_popcount(part.saved) + part.pushed;
	if (calls && part.frame % 16 != 8) {
		part.area += 8;
		part.frame += 8;
	}
	return part;
}

static void part_open(struct fay_emitter *e, const struct fay_part *part)
{
	for (int reg = 15; reg >= 0; reg--)
		if (part->saved & FAY_BIT(reg))
			fay_emit_push(e, (unsigned)reg);
	if (part->area == 8)
		fay_emit_push(e, FAY_RSI); /* shorter than lea; the value does not matter */
	else if (part->area)
		fay_emit_lea(e, FAY_RSP, FAY_RSP, -part->area);
}

static void part_close(struct fay_emitter *e, const struct fay_part *part)
{
	if (part->area == 8)
		fay_emit_pop(e, FAY_RSI); /* rsi is always among the saved: its own pop follows */
	else if (part->area)
		fay_emit_lea(e, FAY_RSP, FAY_RSP, part->area);
	for (unsigned reg = 0; reg < 16; reg++)
		if (part->saved & FAY_BIT(reg))
			fay_emit_pop(e, reg);
}

static const uint8_t test_rsi[] = { 0x48, 0x85, 0xf6 };

/* mov %fs:0, %rsi or rdfsbase %rsi; inc %rsi */
static void emit_key(struct fay_emitter *e, const struct fay_part *part)
{
	static const uint8_t rdfsbase_rsi[] = { 0xf3, 0x48, 0x0f, 0xae, 0xc6 },
			     inc_rsi[] = { 0x48, 0xff, 0xc6 };
	static const uint8_t mov_fs0_rsi[] = { 0x64, 0x48, 0x8b, 0x34, 0x25, 0, 0, 0, 0 };

	if (part->spec->thread_pointer) {
		fay_emit_bytes(e, mov_fs0_rsi, sizeof(mov_fs0_rsi));
		return;
	}
	fay_emit_bytes(e, rdfsbase_rsi, sizeof(rdfsbase_rsi));
	fay_emit_bytes(e, inc_rsi, sizeof(inc_rsi));
}

/* The thread that has the fs base now is the one for which the entry was filled: mov %fs:tid, %esi;
 * cmp %esi, tid(%t). */
static void emit_compare_tid(struct fay_emitter *e, const struct fay_part *part)
{
	static const uint8_t mov_fs_esi[] = { 0x64, 0x8b, 0x34, 0x25 };

	fay_emit_bytes(e, mov_fs_esi, sizeof(mov_fs_esi));
	fay_emit_imm32(e, (uint32_t)part->spec->tid_offset);
	fay_emit_memory(e, false, 0x39, FAY_RSI, part->temporary,
			offsetof(struct fay_thread_entry, tid));
}

struct fay_lookup fay_part_lookup(struct fay_emitter *e, const struct fay_part *part)
{
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;
	const struct fay_trampoline_spec *spec = part->spec;
	uint64_t config = spec->runtime + runtime->config;
	unsigned t = part->temporary;
	unsigned rex_b = t >= 8;
	struct fay_lookup lookup = { 0 };

	emit_key(e, part);
	fay_emit_byte(e, 0x48 | rex_b << 2); /* imul $imm32, %rsi, %t */
	fay_emit_byte(e, 0x69);
	fay_emit_byte(e, 0xc0 | (t & 7) << 3 | FAY_RSI);
	fay_emit_imm32(e, FAY_THREAD_HASH_MULTIPLIER);
	fay_emit_byte(e, 0x48 | rex_b); /* shr $(shift - entry bits), %t */
	fay_emit_byte(e, 0xc1);
	fay_emit_byte(e, 0xe8 | (t & 7));
	fay_emit_byte(e, FAY_THREAD_HASH_SHIFT - FAY_THREAD_ENTRY_BITS);
	fay_emit_byte(e, 0x48 | rex_b); /* and $(entries' bytes - one's), %t */
	fay_emit_byte(e, 0x81);
	fay_emit_byte(e, 0xe0 | (t & 7));
	fay_emit_imm32(e, FAY_PROCESS_AT - (1u << FAY_THREAD_ENTRY_BITS));
	fay_emit_rip_relative(e, 0x03, t,
			      config + offsetof(struct fay_runtime_config, thread_table));
	fay_emit_memory(e, true, 0x39, FAY_RSI, t, offsetof(struct fay_thread_entry, key));
	lookup.slow = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	if (spec->selective && spec->tid_offset >= 0) {
		emit_compare_tid(e, part);
		lookup.other = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	}
	fay_emit_load64(e, FAY_RSI, t, offsetof(struct fay_thread_entry, local));
	if (spec->selective) {
		fay_emit_bytes(e, test_rsi, sizeof(test_rsi));
		lookup.left_out = fay_emit_jump_if(e, FAY_IF_EQUAL);
	}
	return lookup;
}

/* Out of line: falls through if there is no slot left. */
void fay_part_slow(struct fay_emitter *e, const struct fay_part *part,
		   const struct fay_lookup *lookup, size_t have)
{
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;
	size_t none;

	if (lookup->other) {
		fay_emit_land(e, lookup->other);
		emit_key(e, part);
	}
	fay_emit_land(e, lookup->slow);
	fay_emit_call(e, part->spec->runtime + runtime->slow);
	if (lookup->left_out)
		fay_emit_land(e, lookup->left_out);
	fay_emit_bytes(e, test_rsi, sizeof(test_rsi));
	none = fay_emit_jump_if(e, FAY_IF_EQUAL);
	fay_emit_jump(e, e->address + have);
	fay_emit_land(e, none);
}

static void mark_busy(struct fay_emitter *e, struct fay_run *run)
{
	run->enter = e->size;
	fay_emit_memory(e, true, 0x83, 7, FAY_RSI, FAY_AT_BUSY); /* cmpq $0 */
	fay_emit_byte(e, 0);
	run->reentrant = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	fay_emit_store64(e, FAY_RSI, FAY_AT_BUSY, FAY_RSP);
}

static void unmark_busy(struct fay_emitter *e)
{
	fay_emit_memory(e, true, 0xc7, 0, FAY_RSI, FAY_AT_BUSY); /* movq $0 */
	fay_emit_imm32(e, 0);
}

/* The traced program may have misaligned its stack; a probe that spills vectors in aligned form
 * relies on it. rax is free here. */
static void emit_call(struct fay_emitter *e, uint64_t code, bool align)
{
	/* mov %rsp, %rax; and $-16, %rsp; push %rax twice */
	static const uint8_t aligned[] = { 0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x50 };

	if (align)
		fay_emit_bytes(e, aligned, sizeof(aligned));
	fay_emit_call(e, code);
	if (align)
		fay_emit_pop(e, FAY_RSP);
}

static void emit_probes(struct fay_emitter *e, const struct fay_part *part, struct fay_exits *exits)
{
	bool have_local = true;

	if (part->spill_local)
		fay_emit_store64(e, FAY_RSP, part->local_at, FAY_RSI);
	fay_vectors_save(e, &part->vectors, part->vectors_at);
	for (size_t i = 0; i < part->spec->probe_count; i++) {
		const struct fay_probe_facts *facts = part->spec->probes[i].facts;

		if (!runs_here(part, facts))
			continue;
		if (!have_local)
			fay_emit_load64(e, FAY_RSI, FAY_RSP, part->local_at);
		if (facts->event_fields || facts->arguments_used & FAY_BIT(FAY_RDI))
			fay_emit_lea(e, FAY_RDI, FAY_RSP, 0);
		if (facts->arguments_used & FAY_BIT(FAY_RDX))
			fay_emit_movabs(e, FAY_RDX, part->spec->global);
		if (part->spec->probes[i].inlined &&
		    (!part->spec->probes[i].leaves ||
		     exits->count + FAY_INLINE_EXITS <= FAY_EXITS_MAX))
			fay_inline_emit(e, &part->spec->probes[i], exits);
		else
			emit_call(e, part->spec->probes[i].code, facts->aligned_stack);
		have_local = !(facts->clobbered_gprs & FAY_BIT(FAY_RSI));
	}
	if (!have_local)
		fay_emit_load64(e, FAY_RSI, FAY_RSP, part->local_at);
	fay_vectors_restore(e, &part->vectors, part->vectors_at);
}

void fay_part_run(struct fay_emitter *e, const struct fay_part *part, struct fay_run *run,
		  bool guarded)
{
	if (guarded)
		mark_busy(e, run);
	fay_cost_begin(e, fay_part_empty(part) ? 0 : part->spec->cost, part->cost_at, &run->cost);
	fay_fields_late(e, part);
	emit_probes(e, part, &run->exits);
	fay_cost_end(e, &run->cost);
	if (guarded)
		unmark_busy(e);
}

void fay_part_run_aside(struct fay_emitter *e, const struct fay_part *part,
			const struct fay_run *run, size_t restore)
{
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;

	fay_inline_aside(e, &run->exits);
	fay_cost_aside(e, &run->cost);
	if (!run->reentrant)
		return;
	fay_emit_land(e, run->reentrant);
	fay_emit_call(e, part->spec->runtime + runtime->busy);
	fay_emit_jump_back_if(e, FAY_IF_EQUAL, run->enter);
	fay_emit_memory(e, true, 0xff, 0, FAY_RSI, FAY_AT_LOST_REENTRANT);
	fay_emit_jump(e, e->address + restore);
}

bool fay_trampoline_watches(const struct fay_probe_facts *facts)
{
	return LEAVING_KINDS >> facts->kind & 1;
}

bool fay_spec_has_kind(const struct fay_trampoline_spec *spec, uint32_t kinds)
{
	for (size_t i = 0; i < spec->probe_count; i++)
		if (kinds >> spec->probes[i].facts->kind & 1)
			return true;
	return false;
}

/* With records, a call that goes on in another function has not returned yet. */
uint32_t fay_role_kinds(const struct fay_trampoline_spec *spec)
{
	if (spec->role == FAY_ROLE_ENTRY)
		return ENTRY_KINDS | 1u << FAY_PROBE_OFFSET | 1u << FAY_PROBE_MARKER;
	return spec->role == FAY_ROLE_JUMP && spec->records ? 0 : 1u << FAY_PROBE_RETURN;
}

static void leave_hole(struct fay_emitter *e, size_t room)
{
	for (size_t i = 0; i < room; i++)
		fay_emit_byte(e, 0xcc);
}

void fay_place_emit(struct fay_emitter *e, const struct fay_trampoline_spec *spec, size_t room,
		    struct fay_trampoline *trampoline)
{
	struct fay_part part = fay_part_plan(spec, fay_role_kinds(spec), fay_record_uses(spec));
	struct fay_record_code record = { 0 };
	struct fay_lookup lookup;
	struct fay_run run = { 0 };
	struct fay_cost whole;
	size_t have, done, restore;

	part_open(e, &part);
	fay_record_target(e, &part);
	fay_fields_early(e, &part);
	if (part.fields & FAY_FIELD_REGISTERS) {
		fay_emit_lea(e, part.temporary, FAY_RSP, part.frame);
		fay_fields_frame(e, part.temporary, FAY_RBP);
	}
	lookup = fay_part_lookup(e, &part);
	have = e->size;
	fay_cost_begin(e, spec->records ? spec->record_cost : 0, part.cost_at + 4, &whole);
	fay_record_end(e, &part, &record);
	if (!fay_part_empty(&part))
		fay_part_run(e, &part, &run, !spec->unguarded);
	fay_record_begin(e, &part, &record);
	done = e->size;
	fay_cost_end(e, &whole);
	restore = e->size;
	part_close(e, &part);
	if (spec->shared)
		fay_emit_byte(e, 0xc3);
	trampoline->displaced = e->size;
	leave_hole(e, room);

	fay_part_slow(e, &part, &lookup, have);
	fay_emit_jump(e, e->address + restore);
	fay_part_run_aside(e, &part, &run, done);
	fay_record_aside(e, &part, &record, done);
	fay_cost_aside(e, &whole);
}

bool fay_trampoline_emit(const struct fay_trampoline_spec *spec, size_t displaced_room,
			 uint8_t *code, size_t capacity, struct fay_trampoline *trampoline)
{
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = spec->address };

	*trampoline = (struct fay_trampoline){ 0 };
	if (spec->hook)
		fay_emit_call(&e, spec->hook);
	if (!spec->records && !fay_spec_has_kind(spec, fay_role_kinds(spec))) {
		trampoline->displaced = e.size;
		leave_hole(&e, displaced_room);
	} else if (spec->careful ||
		   fay_spec_has_kind(spec, 1u << FAY_PROBE_OFFSET | 1u << FAY_PROBE_MARKER)) {
		trampoline->displaced = fay_offset_emit(&e, spec, displaced_room);
	} else {
		fay_place_emit(&e, spec, displaced_room, trampoline);
	}
	trampoline->size = e.size;
	return !e.failed;
}

static uint32_t fields_of_kind(uint32_t kind)
{
	static const uint32_t fields[] = {
		[FAY_PROBE_ENTRY] = FAY_FIELDS_ENTRY,
		[FAY_PROBE_RETURN] = FAY_FIELDS_RETURN,
		[FAY_PROBE_EXCEPTION] = FAY_FIELDS_EXCEPTION,
		[FAY_PROBE_OFFSET] = FAY_FIELDS_OFFSET,
		[FAY_PROBE_MARKER] = FAY_FIELDS_MARKER,
	};

	return FAY_FIELDS_ALWAYS | (kind < sizeof(fields) / sizeof(*fields) ? fields[kind] : 0);
}

/* The first field, in the event's order, that a probe reads and its kind does not have. */
static const char *field_refusal(uint32_t fields)
{
	static const struct {
		uint32_t fields;
		const char *refusal;
	} refusals[] = {
		{ FAY_FIELDS_ARGUMENTS, "reads event.arg, which only probes of calls, offset and "
					"USDT probes have" },
		{ FAY_FIELD_RETVAL | FAY_FIELD_RETVAL2 | FAY_FIELD_RETVAL_FLOAT,
		  "reads the return value, which only return probes have, or rbp in its place, "
		  "which only entry probes have" },
		{ FAY_FIELD_DURATION,
		  "reads event.duration, which only return and exception probes have" },
		{ FAY_FIELD_REGISTERS,
		  "reads event.reg, which only offset, USDT and return probes have" },
		{ FAY_FIELD_FLAGS, "reads event.flags or event.caller, which only offset and USDT "
				   "probes, and probes of calls, have" },
		{ ~0u, "reads a field that only probes at a patch point have" },
	};
	size_t i = 0;

	while (!(fields & refusals[i].fields))
		i++;
	return refusals[i].refusal;
}

const char *fay_trampoline_refusal(const struct fay_probe_facts *facts)
{
	const uint32_t callee_saved = FAY_BIT(FAY_RBX) | FAY_BIT(FAY_RBP) | FAY_BIT(FAY_R12) |
				      FAY_BIT(FAY_R13) | FAY_BIT(FAY_R14) | FAY_BIT(FAY_R15);
	uint32_t missing = facts->event_fields & ~fields_of_kind(facts->kind);

	if (missing)
		return field_refusal(missing);
	if (facts->clobbered_gprs & callee_saved)
		return "does not restore the registers that the ABI says it must";
	return NULL;
}
