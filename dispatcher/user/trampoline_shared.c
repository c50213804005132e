/* SPDX-License-Identifier: MIT */
/*
 * The shared strategy. Thousands of points have the same probes, and differ in the function's name and in the displaced instructions only: one body
 * serves them all. In front of each stub, if some probe asks for them, lie the names. Bytes from the stub's begin:
 *
 *	-24  function, module, address        24, only if they are read
 *	  0  call body                         5   the address that it pushes, R, is the stub's identity
 *	  5  (displaced instructions and the jump back: the loader's)
 *
 * and where calls are watched until they return (trampoline_call.c):
 *
 *	  5  lea 8(%rsp), %rsp                 5
 *	 10  call displaced                    5   pushes `returns` where the return address was
 *   returns:
 *	 15  lea -8(%rsp), %rsp                5   room for the real return address
 *	 20  push $(R - base)                  5
 *	 25  jmp body.returns                  5   ends in lea 8(%rsp), %rsp; ret
 *	[30  lea R(%rip), %rcx; jmp body.exception   12]
 *   displaced:
 *
 * The body ends in a `ret`. Each call has its `ret` and each `ret` its call, so the CPU's return predictor stays right. Calls that are not watched (no
 * room, reentrance) come back to `displaced`: the body adds the distance to R.
 *
 * Against a trampoline of its own for each point this costs a call, a `ret` and, for names, loads instead of immediate operands; it saves some 100
 * to 600 bytes a point: memory, the time to write it, and the instruction cache.
 */
#include "parts.h"

#define NAMES (FAY_FIELD_FUNCTION | FAY_FIELD_MODULE | FAY_FIELD_ADDRESS)
#define KINDS (1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN | 1u << FAY_PROBE_EXCEPTION)
#define WATCHING (1u << FAY_PROBE_RETURN | 1u << FAY_PROBE_EXCEPTION)

bool fay_shared_possible(const struct fay_trampoline_spec *spec)
{
	return !spec->hook && !spec->careful && spec->probe_count && !fay_spec_has_kind(spec, ~KINDS);
}

size_t fay_stub_unwatched(const struct fay_trampoline_spec *spec)
{
	return 25 + (fay_spec_has_kind(spec, 1u << FAY_PROBE_EXCEPTION) ? 12 : 0);
}

bool fay_shared_emit(const struct fay_trampoline_spec *spec, uint8_t *code, size_t capacity, struct fay_shared *shared)
{
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = spec->address };
	struct fay_trampoline_spec body = *spec;
	struct fay_trampoline made = { 0 };

	body.shared = true;
	body.base = spec->address;
	*shared = (struct fay_shared){ .entry = spec->address, .base = spec->address };
	for (size_t i = 0; i < spec->probe_count; i++)
		shared->names |= (spec->probes[i].facts->event_fields & NAMES) != 0;
	fay_entry_emit(&e, &body, 0, &made);
	if (made.exception)
		shared->exception = spec->address + made.exception;
	if (fay_spec_has_kind(spec, WATCHING)) {
		shared->returns = spec->address + e.size;
		fay_return_emit(&e, &body);
	}
	shared->size = e.size;
	return !e.failed;
}

static void emit_watching(struct fay_emitter *e, const struct fay_shared *shared, uint64_t identity, struct fay_trampoline *trampoline)
{
	int64_t distance = (int64_t)(identity - shared->base);
	size_t call;

	fay_emit_lea(e, FAY_RSP, FAY_RSP, 8);
	call = fay_emit_call_ahead(e);
	trampoline->returns = e->size;
	fay_emit_lea(e, FAY_RSP, FAY_RSP, -8);
	fay_emit_byte(e, 0x68); /* push */
	fay_emit_imm32(e, (uint32_t)distance);
	e->failed |= distance != (int32_t)distance;
	fay_emit_jump(e, shared->returns);
	if (shared->exception) {
		trampoline->exception = e->size;
		fay_emit_rip_relative(e, 0x8d, FAY_RCX, identity);
		fay_emit_jump(e, shared->exception);
	}
	fay_emit_land(e, call);
}

bool fay_shared_stub(const struct fay_shared *shared, const struct fay_trampoline_spec *spec, uint8_t *code, size_t capacity,
		     struct fay_trampoline *trampoline)
{
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = spec->address };
	const uint64_t names[3] = { spec->function, spec->module, spec->place };

	_Static_assert(sizeof(names) == FAY_STUB_NAMES, "the stub's names");
	*trampoline = (struct fay_trampoline){ 0 };
	if (shared->names)
		fay_emit_bytes(&e, names, sizeof(names));
	trampoline->entry = e.size;
	fay_emit_call(&e, shared->entry);
	if (shared->returns)
		emit_watching(&e, shared, e.address + e.size, trampoline);
	trampoline->displaced = e.size;
	trampoline->size = e.size;
	return !e.failed;
}
