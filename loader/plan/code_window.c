/* SPDX-License-Identifier: MIT */
/*
 * Copies of the program's instructions in a zone, with a part in front of each exit:
 *
 *	(instructions)
 *	[jcc conditional]                    to the part of a conditional exit, which comes last
 *	(instructions)
 *	part: probes, the call's record      fay_trampoline_emit(), or a stub
 *	[jmp *link(%rip)]                    to another session's part in front of the same exit
 *	(exit)
 *   conditional: part; jmp target
 *
 * A jump that leads to a block, or to the function's entry, whose originals are overwritten or must
 * not be entered any more, leads to their copies.
 */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define LINK_BYTES 6u
#define JCC_BYTES 6u

/* Where the copy of an instruction may lie is known when it is written. */
static bool put(struct fay_writer *writer, const void *bytes, size_t size)
{
	struct fay_zone_plan *zone = writer->zone;

	if (zone->capacity - zone->code_size < size)
		return snprintf(writer->reason, FAY_REASON_MAX,
				"needs a trampoline that does not fit (internal)") < 0;
	memcpy(fay_writer_code(writer), bytes, size);
	zone->code_size += size;
	return true;
}

static bool put_rel32(struct fay_writer *writer, const uint8_t *opcode, size_t size,
		      uint64_t target)
{
	int64_t distance = (int64_t)(target - (fay_writer_at(writer) + size + 4));
	int32_t rel = (int32_t)distance;

	if (distance != rel)
		return snprintf(writer->reason, FAY_REASON_MAX,
				"is out of the trampoline's reach") < 0;
	return put(writer, opcode, size) && put(writer, &rel, 4);
}

static bool put_jump(struct fay_writer *writer, uint64_t target)
{
	return put_rel32(writer, (const uint8_t *)"\xe9", 1, target);
}

static bool decode(const uint8_t *bytes, size_t size, ZydisDecodedInstruction *insn)
{
	static ZydisDecoder decoder;
	static bool ready;

	if (!ready)
		ready = ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
						      ZYDIS_STACK_WIDTH_64));
	return ready &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, insn));
}

static bool is_relative(const ZydisDecodedInstruction *insn)
{
	return insn->raw.imm[0].is_relative && insn->raw.imm[0].size &&
	       insn->meta.category != ZYDIS_CATEGORY_CALL;
}

/* The instruction at `at` of the window as it is: relocated. */
static bool put_instruction(struct fay_writer *writer, const struct fay_site *window, size_t at)
{
	struct fay_displaced displaced;

	if (!fay_displace(fay_site_program(writer->plan, window) + at, window->size - at, 1,
			  window->site + at, fay_writer_at(writer), &displaced, writer->reason))
		return false;
	fay_writer_note_pushed(writer, &displaced);
	return put(writer, displaced.code, displaced.size - FAY_JUMP_BYTES);
}

/* Where the copy of what lies at an address is that must be entered no more; 0: it is entered as
 * ever. */
static uint64_t copy_of(const struct fay_writer *writer, uint64_t address)
{
	const struct fay_flow *flow = writer->point->flow;

	if (writer->entry_copy && (address == writer->plan->sites[writer->point->first_site].site ||
				   address == writer->point->function.address))
		return writer->entry_copy;
	for (size_t i = 0; i < flow->block_count; i++)
		if (flow->blocks[i].at == address)
			return writer->blocks[i].copy;
	return 0;
}

bool fay_window_branches(const struct fay_writer *writer, const struct fay_site *window)
{
	ZydisDecodedInstruction insn;

	for (size_t at = 0;
	     at < window->length &&
	     decode(fay_site_program(writer->plan, window) + at, window->size - at, &insn);
	     at += insn.length) {
		uint64_t to = window->site + at + insn.length + (uint64_t)insn.raw.imm[0].value.s;

		if (is_relative(&insn) &&
		    (to == window->site || to == writer->point->function.address ||
		     copy_of(writer, to)))
			return true;
	}
	return false;
}

/* A branch to what has its copy. */
static bool put_branch(struct fay_writer *writer, const ZydisDecodedInstruction *insn, uint64_t to)
{
	uint8_t jcc[2] = { 0x0f, 0x80 | (insn->opcode & 15) };
	bool conditional = (insn->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn->opcode >= 0x70 &&
			    insn->opcode <= 0x7f) ||
			   (insn->opcode_map == ZYDIS_OPCODE_MAP_0F && insn->opcode >= 0x80 &&
			    insn->opcode <= 0x8f);

	if (insn->mnemonic == ZYDIS_MNEMONIC_JMP)
		return put_jump(writer, to);
	if (!conditional)
		return snprintf(writer->reason, FAY_REASON_MAX, "has %s, which cannot be moved",
				ZydisMnemonicGetString(insn->mnemonic)) < 0;
	return put_rel32(writer, jcc, sizeof(jcc), to);
}

/* jmp *memory, or jmp *register, becomes a load of the same into rax; with rsp, which is another
 * one in the trampoline, it is not known. */
static void target_of_indirect(const struct fay_plan *plan, const struct fay_site *window,
			       const struct fay_exit *exit, struct fay_jump_target *target)
{
	size_t at = (size_t)(exit->at - window->site);
	const uint8_t *bytes = fay_site_program(plan, window) + at;
	ZydisDecodedInstruction insn;
	uint8_t modrm, rm, base, rex = 0x48;
	size_t begin;

	if (!decode(bytes, window->size - at, &insn) || insn.opcode != 0xff ||
	    insn.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || insn.raw.modrm.reg != 4 ||
	    insn.length > 14)
		return;
	modrm = bytes[insn.raw.modrm.offset];
	rm = modrm & 7;
	base = modrm < 0xc0 && rm == 4 ? bytes[insn.raw.modrm.offset + 1] & 7 : rm;
	rex |= insn.raw.rex.B | insn.raw.rex.X << 1;
	if (!insn.raw.rex.B && base == 4)
		return;
	begin = 0;
	for (unsigned i = 0; i < insn.raw.prefix_count; i++)
		if (insn.raw.prefixes[i].value == 0x64 || insn.raw.prefixes[i].value == 0x65)
			target->load[begin++] = insn.raw.prefixes[i].value;
		else if (insn.raw.prefixes[i].value == 0x67)
			return;
	target->load[begin++] = rex;
	target->load[begin++] = 0x8b;
	target->load[begin++] = modrm & ~0x38;
	for (size_t i = insn.raw.modrm.offset + 1u; i < insn.length; i++)
		target->load[begin++] = bytes[i];
	target->load_size = (uint8_t)begin;
	if (modrm < 0x40 && rm == 5) { /* rip-relative */
		target->rip_at = (uint8_t)(begin - 4);
		target->address =
			window->site + at + insn.length + (uint64_t)(int64_t)insn.raw.disp.value;
	}
}

/* A direct jump may lead to a stub of the procedure linkage table, which the loader has found out
 * (exits.c): then it is the word that counts. */
static struct fay_jump_target target_of(const struct fay_plan *plan, const struct fay_site *window,
					const struct fay_exit *exit)
{
	static const uint8_t load_rip[3] = { 0x48, 0x8b, 0x05 };
	struct fay_jump_target target = { 0 };

	if (exit->kind == FAY_EXIT_INDIRECT) {
		target_of_indirect(plan, window, exit, &target);
	} else if (exit->word) {
		memcpy(target.load, load_rip, sizeof(load_rip));
		target.load_size = sizeof(load_rip) + 4;
		target.rip_at = sizeof(load_rip);
		target.address = exit->word;
	} else {
		target.address = exit->target;
	}
	return target;
}

static bool put_link(struct fay_writer *writer, uint64_t link_slot)
{
	int32_t rel = (int32_t)(link_slot - (fay_writer_at(writer) + LINK_BYTES));

	return !link_slot || (put(writer, "\xff\x25", 2) && put(writer, &rel, 4));
}

/* Probes and record, the link, and the exit itself: all that is known of it from `written` on. */
static bool put_exit(struct fay_writer *writer, const struct fay_site *window,
		     const struct fay_exit *exit, uint64_t link_slot, struct fay_written *written)
{
	struct fay_trampoline_spec spec = writer->spec;
	struct fay_zone_plan *zone = writer->zone;
	size_t capacity = zone->capacity - zone->code_size, start = zone->code_size, end;
	struct fay_trampoline made;
	bool stub, fits;

	spec.address = fay_writer_at(writer);
	spec.role = exit->kind == FAY_EXIT_RETURN ? FAY_ROLE_RETURN : FAY_ROLE_JUMP;
	spec.careful |= exit->careful;
	if (spec.role == FAY_ROLE_JUMP && spec.records)
		spec.target = target_of(writer->plan, window, exit);
	stub = writer->set && writer->set->body.leave && !exit->careful &&
	       !(spec.records && spec.role == FAY_ROLE_JUMP);
	fits = stub ? capacity > FAY_SHARED_STUB_MAX + FAY_EXIT_ROOM &&
			       fay_shared_stub(&writer->set->body, &spec, fay_writer_code(writer),
					       capacity, &made)
		    : fay_trampoline_emit(&spec, FAY_EXIT_ROOM, fay_writer_code(writer), capacity,
					  &made);
	if (!fits)
		return snprintf(writer->reason, FAY_REASON_MAX,
				"needs a trampoline that does not fit (internal)") < 0;
	if (made.place)
		fay_zone_note_address(zone, start + made.place, false);
	written->inner = spec.address;
	zone->code_size = start + made.displaced;
	if (!put_link(writer, link_slot))
		return false;
	written->last = fay_writer_at(writer);
	if (!(exit->conditional || !exit->length
		      ? put_jump(writer, exit->target)
		      : put_instruction(writer, window, (size_t)(exit->at - window->site))))
		return false;
	end = start + made.size;
	if (stub)
		return true;
	if (zone->code_size > start + made.displaced + FAY_EXIT_ROOM)
		return snprintf(writer->reason, FAY_REASON_MAX,
				"needs a trampoline that does not fit (internal)") < 0;
	zone->code_size = end;
	return true;
}

static const struct fay_exit *exit_at(const struct fay_writer *writer,
				      const struct fay_site *window, uint64_t address)
{
	for (uint32_t i = 0; writer->point->exits && i < window->exit_count; i++)
		if (writer->point->flow->exits[window->first_exit + i].at == address)
			return &writer->point->flow->exits[window->first_exit + i];
	return NULL;
}

/* Conditional exits whose parts are still to be written. */
struct waiting {
	const struct fay_exit *exit;
	size_t rel32; /* in the zone's code */
};

static bool put_one(struct fay_writer *writer, struct fay_site *window, size_t at,
		    const ZydisDecodedInstruction *insn, uint64_t link_slot,
		    struct fay_written *written, struct waiting *waiting, size_t *count)
{
	const struct fay_exit *exit = exit_at(writer, window, window->site + at);
	uint8_t jcc[2] = { 0x0f, 0x80 | (insn->opcode & 15) };
	uint64_t to;

	if (exit && !exit->conditional)
		return put_exit(writer, window, exit, link_slot, written);
	if (exit) {
		waiting[*count] = (struct waiting){ exit, writer->zone->code_size + sizeof(jcc) };
		++*count;
		return put(writer, jcc, sizeof(jcc)) && put(writer, "\0\0\0\0", 4);
	}
	to = is_relative(insn) && writer->point->flow && writer->point->exits
		     ? copy_of(writer, window->site + at + insn->length +
					       (uint64_t)insn->raw.imm[0].value.s)
		     : 0;
	return to ? put_branch(writer, insn, to) : put_instruction(writer, window, at);
}

bool fay_window_write(struct fay_writer *writer, struct fay_site *window, uint64_t link_slot,
		      struct fay_written *written)
{
	struct waiting waiting[FAY_FLOW_WINDOW_MAX];
	const struct fay_exit *runs_on;
	size_t count = 0;

	*written = (struct fay_written){ .copy = fay_writer_at(writer) };
	window->boundary_count = 0;
	for (size_t at = 0; at < window->length;) {
		ZydisDecodedInstruction insn;

		if (!decode(fay_site_program(writer->plan, window) + at, window->size - at, &insn))
			return snprintf(writer->reason, FAY_REASON_MAX,
					"has bytes that are not an instruction") < 0;
		if (at < fay_site_closed(window)) {
			fay_site_add_boundary(window, (uint8_t)at, fay_writer_at(writer));
		}
		if (!put_one(writer, window, at, &insn, link_slot, written, waiting, &count))
			return false;
		at += insn.length;
	}
	runs_on = exit_at(writer, window, window->site + window->length);
	if (runs_on && !put_exit(writer, window, runs_on, link_slot, written))
		return false;
	if (!window->ends && !runs_on && !put_jump(writer, window->site + window->length))
		return false;
	for (size_t i = 0; i < count; i++) {
		int32_t rel = (int32_t)(writer->zone->code_size - (waiting[i].rel32 + 4));

		memcpy(writer->zone->code + waiting[i].rel32, &rel, 4);
		if (!put_exit(writer, window, waiting[i].exit, link_slot, written))
			return false;
	}
	if (window->exit_count != 1)
		written->inner = 0;
	if (!written->last)
		written->last = written->copy;
	return true;
}
