/* SPDX-License-Identifier: MIT */
/*
 * The shared strategy. Thousands of points have the same probes, and differ in the function's name
 * and in the displaced instructions only: one body for entries and one for exits serve them all.
 * Names, if somebody asks for them, lie in front of the stub's call. Bytes from the address that
 * the call leaves on the stack:
 *
 *	[-39  jmp call                         2, at exits: what runs before it is in front
 *	 -37  function, module, address, struct fay_watched		32]
 *	  -5  call body                        5
 *	   0  (what is in the hole: the loader's)
 *
 * The body ends in a `ret`. Each call has its `ret` and each `ret` its call, so the CPU's return
 * predictor stays right.
 *
 * Against a trampoline of its own for each point this costs a call, a `ret` and, for names, loads
 * instead of immediate operands; it saves some 100 to 600 bytes a place: memory, the time to write
 * it, and the instruction cache.
 */
#include "trampoline_private.h"

#define NAMES (FAY_FIELD_FUNCTION | FAY_FIELD_MODULE | FAY_FIELD_ADDRESS)
#define KINDS (1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN | 1u << FAY_PROBE_EXCEPTION)
#define ALIGNMENT 64u

bool fay_shared_possible(const struct fay_trampoline_spec *spec)
{
	return !spec->hook && !spec->careful && !spec->sweeps && spec->probe_count &&
	       !fay_spec_has_kind(spec, ~KINDS);
}

static uint64_t align(struct fay_emitter *e)
{
	while (e->size % ALIGNMENT && !e->failed)
		fay_emit_byte(e, 0xcc);
	return e->address + e->size;
}

/* 0: nothing runs at such places. */
static uint64_t emit_body(struct fay_emitter *e, struct fay_trampoline_spec *body,
			  enum fay_role role)
{
	struct fay_trampoline made;
	uint64_t address;

	body->role = role;
	if (!body->records && !fay_spec_has_kind(body, fay_role_kinds(body)))
		return 0;
	address = align(e);
	fay_place_emit(e, body, 0, &made);
	return address;
}

static uint64_t emit_routine(struct fay_emitter *e, const struct fay_trampoline_spec *body,
			     uint32_t kind)
{
	uint64_t address;

	if (!fay_spec_has_kind(body, 1u << kind))
		return 0;
	address = align(e);
	fay_routine_write(e, body, kind);
	return address;
}

bool fay_shared_emit(const struct fay_trampoline_spec *spec, uint8_t *code, size_t capacity,
		     struct fay_shared *shared)
{
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = spec->address };
	struct fay_trampoline_spec body = *spec;

	body.shared = true;
	*shared = (struct fay_shared){ .names = spec->records };
	for (size_t i = 0; i < spec->probe_count; i++)
		shared->names |= (spec->probes[i].facts->event_fields & NAMES) != 0;
	shared->entry = emit_body(&e, &body, FAY_ROLE_ENTRY);
	shared->leave = emit_body(&e, &body, FAY_ROLE_RETURN);
	if (spec->records) {
		shared->returned = emit_routine(&e, &body, FAY_PROBE_RETURN);
		shared->left = emit_routine(&e, &body, FAY_PROBE_EXCEPTION);
	}
	shared->size = e.size;
	return !e.failed;
}

bool fay_shared_stub(const struct fay_shared *shared, const struct fay_trampoline_spec *spec,
		     uint8_t *code, size_t capacity, struct fay_trampoline *trampoline)
{
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = spec->address };
	const uint64_t names[4] = { spec->function, spec->module, spec->place, spec->watched };
	uint64_t body = spec->role == FAY_ROLE_ENTRY ? shared->entry : shared->leave;

	_Static_assert(sizeof(names) == FAY_STUB_NAMES, "the stub's names");
	*trampoline = (struct fay_trampoline){ 0 };
	if (shared->names && spec->role != FAY_ROLE_ENTRY) {
		fay_emit_byte(&e, 0xeb);
		fay_emit_byte(&e, sizeof(names));
	}
	if (shared->names) {
		trampoline->place = e.size + 2 * sizeof(*names);
		fay_emit_bytes(&e, names, sizeof(names));
	}
	if (spec->role == FAY_ROLE_ENTRY)
		trampoline->entry = e.size;
	fay_emit_call(&e, body);
	trampoline->displaced = trampoline->size = e.size;
	return !e.failed;
}

bool fay_shared_routine(uint64_t routine, uint64_t stub, uint64_t address, uint8_t *code,
			size_t capacity, size_t *size)
{
	struct fay_emitter e = { .code = code, .capacity = capacity, .address = address };

	fay_emit_rip_relative(&e, 0x8d, FAY_R8, stub + FAY_STUB_CALL); /* lea */
	fay_emit_jump(&e, routine);
	*size = e.size;
	return !e.failed;
}
