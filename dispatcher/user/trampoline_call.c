/* SPDX-License-Identifier: MIT */
/*
 * Watching a call until it returns. docs/dispatcher.md says why it is done in this way; here is what is written:
 *
 *   at the entry, behind the entry probes:
 *   push:
 *	mov  top(%rdi), %rdi                  from the thread's entry: behind the newest of its watched calls (struct fay_call_stack)
 *	cmpq $0, slot(newest); jne grow       out of line: top += 24, or if there is no room the runtime makes some, or the call counts as lost
 *	rsp at entry -> slot                  first: from here on the place is taken, also for a signal handler
 *	[rdtsc -> cycles]                     only for durations
 *	return address -> address             last: calls.c knows a call that is being begun by its address, 0
 *	...restore...
 *	lea  8(%rsp), %rsp; call displaced    pushes `returns` exactly where the return address was: the function's stack arguments are in
 *   returns:                              their places, and the processor's return predictor agrees with every ret
 *	lea  -8(%rsp), %rsp                   room for the real return address
 *	...save; [return values -> event]; rsi = LOCAL as at the entry...
 *	mov  top(%rdi), %rdi
 *	lea  frame(%rsp), %rax; cmp %rax, slot(newest); jne second     out of line: the one before, if the newest has ended
 *   found:
 *	address -> frame(%rsp); 0 -> address; 0 -> slot
 *   popped:
 *	(busy, fields, return probes)
 *	...restore...; ret
 *
 * A call that ends leaves its place on the stack of watched calls, and the next one at the same depth takes it: `top` changes with the depth only. So a
 * loop of calls has no chain from store to load to store through it. What counts besides is how many loads lie between the thread pointer and the newest
 * call: that is why `top` is in the thread table.
 */
#include "parts.h"

enum {
	CALL_SLOT = offsetof(struct fay_call, slot),
	CALL_RETURN = offsetof(struct fay_call, address),
	CALL_CYCLES = offsetof(struct fay_call, cycles),
	CALL_BYTES = sizeof(struct fay_call),
	ENTRY_TOP = offsetof(struct fay_thread_entry, top),
};

static bool wants_duration(const struct fay_trampoline_spec *spec)
{
	for (size_t i = 0; i < spec->probe_count; i++)
		if (spec->probes[i].facts->event_fields & FAY_FIELD_DURATION)
			return true;
	return false;
}

enum { NEWEST = -(int)sizeof(struct fay_call), SECOND = 2 * NEWEST }; /* from the top */

uint32_t fay_watch_uses(const struct fay_trampoline_spec *spec)
{
	uint32_t uses = FAY_BIT(FAY_RDI);

	if (!spec->unguarded || wants_duration(spec))
		uses |= FAY_BIT(FAY_RAX);
	return wants_duration(spec) ? uses | FAY_BIT(FAY_RDX) : uses;
}

/* cmpq $0, at(%rdi) */
static void emit_compare_zero(struct fay_emitter *e, int32_t at)
{
	fay_emit_memory(e, true, 0x83, 7, FAY_RDI, at);
	fay_emit_byte(e, 0);
}

static void emit_store_zero(struct fay_emitter *e, int32_t at)
{
	fay_emit_memory(e, true, 0xc7, 0, FAY_RDI, at);
	fay_emit_imm32(e, 0);
}

size_t fay_watch_push(struct fay_emitter *e, const struct fay_part *part, size_t *push)
{
	unsigned t = part->spec->unguarded ? FAY_RSI : FAY_RAX; /* LOCAL is needed to mark the thread as no longer busy */
	size_t grow;

	if (!part->keeps_entry)
		fay_emit_load64(e, FAY_RDI, FAY_RSI, FAY_AT_ENTRY);
	*push = e->size;
	fay_emit_load64(e, FAY_RDI, FAY_RDI, ENTRY_TOP);
	emit_compare_zero(e, NEWEST + CALL_SLOT);
	grow = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	fay_emit_lea(e, t, FAY_RSP, part->frame);
	fay_emit_store64(e, FAY_RDI, NEWEST + CALL_SLOT, t);
	if (wants_duration(part->spec)) {
		fay_fields_rdtsc(e);
		fay_emit_store64(e, FAY_RDI, NEWEST + CALL_CYCLES, FAY_RAX);
	}
	fay_emit_load64(e, t, FAY_RSP, part->frame);
	fay_emit_store64(e, FAY_RDI, NEWEST + CALL_RETURN, t);
	return grow;
}

/* One instruction changes the top: a signal handler's calls before and after it are above those that are there. */
size_t fay_watch_grow(struct fay_emitter *e, size_t push)
{
	size_t full;

	fay_emit_memory(e, true, 0x3b, FAY_RDI, FAY_RSI, FAY_AT_CALLS_LIMIT);
	full = fay_emit_jump_if(e, FAY_IF_NOT_BELOW);
	fay_emit_load64(e, FAY_RDI, FAY_RSI, FAY_AT_ENTRY);
	fay_emit_memory(e, true, 0x83, 0, FAY_RDI, ENTRY_TOP); /* addq $24 */
	fay_emit_byte(e, CALL_BYTES);
	fay_emit_jump(e, e->address + push);
	return full;
}

/* Fields, probes; ends with the thread no longer marked as busy. What is returned has no jump (0) if the mark is not looked at. */
static struct fay_guard run_probes(struct fay_emitter *e, const struct fay_part *part, struct fay_cost *cost)
{
	struct fay_guard guard = { 0 };

	if (!part->spec->unguarded)
		guard = fay_part_enter(e);

	fay_cost_begin(e, part, cost);
	fay_fields_late(e, part);
	fay_part_probes(e, part);
	fay_cost_end(e, part, cost);
	if (guard.reentrant)
		fay_part_leave(e);
	return guard;
}

static void count_reentrant(struct fay_emitter *e, const struct fay_part *part, const struct fay_guard *guard, size_t restore)
{
	if (!guard->reentrant)
		return;
	fay_part_reentrant(e, part, guard);
	fay_emit_jump(e, e->address + restore);
}

/* Places of jumps to what is out of line at a return, and of where that goes on. */
struct leaving {
	struct fay_lookup lookup;
	size_t have, second, found, popped, restore;
	bool timed;
};

static void emit_pop(struct fay_emitter *e, const struct fay_part *part, struct leaving *leaving)
{
	fay_emit_load64(e, FAY_RDI, FAY_RDI, ENTRY_TOP);
	fay_emit_lea(e, FAY_RAX, FAY_RSP, part->frame);
	fay_emit_memory(e, true, 0x39, FAY_RAX, FAY_RDI, NEWEST + CALL_SLOT);
	leaving->second = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	leaving->found = e->size;
	fay_emit_load64(e, FAY_RAX, FAY_RDI, NEWEST + CALL_RETURN);
	fay_emit_store64(e, FAY_RSP, part->frame, FAY_RAX);
	if (leaving->timed) {
		fay_emit_load64(e, FAY_RAX, FAY_RDI, NEWEST + CALL_CYCLES);
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, duration), FAY_RAX);
	}
	emit_store_zero(e, NEWEST + CALL_RETURN);
	emit_store_zero(e, NEWEST + CALL_SLOT);
	leaving->popped = e->size;
}

/*
 * The newest call has ended, and it is the one before that returns; or it is some other, which the runtime finds. The place that was compared is the one that
 * is read: the calls of a signal handler may have changed the top in between, and leave a call that is under way where it is. Those that it has left by unwinding
 * must not come to lie behind the top: so the place that is given up is looked at once more.
 */
static void emit_pop_aside(struct fay_emitter *e, const struct fay_part *part, const struct leaving *leaving)
{
	const struct fay_runtime_header *runtime = (const void *)fay_runtime_blob;
	size_t search, other, lost, empty;

	fay_emit_land(e, leaving->second);
	emit_compare_zero(e, NEWEST + CALL_SLOT);
	search = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	fay_emit_memory(e, true, 0x39, FAY_RAX, FAY_RDI, SECOND + CALL_SLOT);
	other = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	fay_emit_load64(e, FAY_RAX, FAY_RSI, FAY_AT_ENTRY);
	fay_emit_memory(e, true, 0x83, 5, FAY_RAX, ENTRY_TOP); /* subq $24 */
	fay_emit_byte(e, CALL_BYTES);
	emit_compare_zero(e, NEWEST + CALL_SLOT);
	empty = fay_emit_jump_if(e, FAY_IF_EQUAL);
	fay_emit_memory(e, true, 0x83, 0, FAY_RAX, ENTRY_TOP); /* addq $24 */
	fay_emit_byte(e, CALL_BYTES);
	fay_emit_land(e, empty);
	fay_emit_lea(e, FAY_RDI, FAY_RDI, -CALL_BYTES);
	fay_emit_jump(e, e->address + leaving->found);
	fay_part_slow(e, part, &leaving->lookup, leaving->have);
	fay_emit_lea(e, FAY_RAX, FAY_RSP, part->frame);
	fay_emit_land(e, search);
	fay_emit_land(e, other); /* rsi = LOCAL or 0, rax = where the return address was; to rax = return address, rdi = time */
	fay_emit_call(e, part->spec->runtime + runtime->leave);
	fay_emit_store64(e, FAY_RSP, part->frame, FAY_RAX);
	if (leaving->timed)
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, duration), FAY_RDI);
	fay_emit_bytes(e, "\x48\x85\xf6", 3);
	lost = fay_emit_jump_if(e, FAY_IF_EQUAL);
	fay_emit_jump(e, e->address + leaving->popped);
	fay_emit_land(e, lost);
	fay_emit_jump(e, e->address + leaving->restore);
}

void fay_return_emit(struct fay_emitter *e, const struct fay_trampoline_spec *spec)
{
	/* rax holds what the function returns and most probes change it: with it instead of a further register there is one less to save */
	struct fay_part part = fay_part_plan(spec, 1u << FAY_PROBE_RETURN, FAY_BIT(FAY_RDI) | FAY_BIT(FAY_RAX));
	struct leaving leaving = { .timed = part.fields & FAY_FIELD_DURATION };
	struct fay_cost cost = { 0 };
	struct fay_guard guard = { 0 };

	if (!spec->shared)
		fay_emit_lea(e, FAY_RSP, FAY_RSP, -8);
	fay_part_open(e, &part);
	fay_fields_early(e, &part);
	leaving.lookup = fay_part_lookup(e, &part);
	leaving.have = e->size;
	emit_pop(e, &part, &leaving);
	if (!fay_part_empty(&part))
		guard = run_probes(e, &part, &cost);
	leaving.restore = e->size;
	fay_part_close(e, &part);
	if (part.pushed)
		fay_emit_lea(e, FAY_RSP, FAY_RSP, part.pushed);
	fay_emit_byte(e, 0xc3);

	fay_cost_aside(e, &part, &cost);
	count_reentrant(e, &part, &guard, leaving.restore);
	emit_pop_aside(e, &part, &leaving);
}

/* void exception(uint64_t cycles, void *local, uint64_t slot [, stub]), called by the runtime's personality routine [through the stub]. */
void fay_exception_emit(struct fay_emitter *e, const struct fay_trampoline_spec *spec)
{
	struct fay_part part = fay_part_plan(spec, 1u << FAY_PROBE_EXCEPTION, 0);
	int32_t area = part.area;
	struct fay_cost cost = { 0 };
	struct fay_guard guard;
	size_t restore;

	part.saved = 0; /* a C function: the caller-saved registers are its own, the others no probe changes */
	part.temporary = FAY_RAX;
	part.frame = 0;
	if (area % 16 != 0)
		area += 8;
	area += 8;
	fay_emit_lea(e, FAY_RSP, FAY_RSP, -area);
	if (part.fields & FAY_FIELD_DURATION)
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, duration), FAY_RDI);
	if (part.fields & FAY_FIELD_STACK_POINTER)
		fay_emit_store64(e, FAY_RSP, offsetof(struct fay_event, stack_pointer), FAY_RDX);
	if (spec->shared)
		fay_fields_names(e, &part, FAY_RCX);
	guard = run_probes(e, &part, &cost);
	restore = e->size;
	fay_emit_lea(e, FAY_RSP, FAY_RSP, area);
	fay_emit_byte(e, 0xc3);
	fay_cost_aside(e, &part, &cost);
	count_reentrant(e, &part, &guard, restore);
}
