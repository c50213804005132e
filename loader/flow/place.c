/* SPDX-License-Identifier: MIT */
/*
 * One place where a jump is to be written, judged by the function's own instructions alone: what
 * other code of the module leads there is looked for elsewhere (loader/plan/inbound.c).
 */
#include <string.h>

#include "fay/loader.h"
#include "flow_private.h"

#define INSTRUCTION_MAX 15u
#define NOP 0x90u
#define INT3 0xccu

struct judging {
	struct fay_code code;
	uint64_t start, end; /* of the function */
	size_t step;         /* at the place */
	bool indirect;       /* some jump is: where to is not known */
	bool first;          /* FAY_PLACE_AT_FIRST, without endbr64 */
};

/* What is behind it runs only if something leads there. */
static bool ends_here(const struct fay_step *step)
{
	return fay_step_ends(step) || step->away;
}

static unsigned long offset_of(const struct judging *judging, uint64_t at)
{
	return (unsigned long)(at - judging->start);
}

/* Whether the function has that many bytes there, with the padding behind it, which the compiler
 * puts between functions up to a multiple of 16. */
static bool has_room(const struct judging *judging, uint64_t at)
{
	const struct fay_flow_program *program = judging->code.program;
	uint64_t end = at + FAY_JUMP_BYTES, padding = judging->end;
	uint8_t bytes[FAY_JUMP_BYTES + INSTRUCTION_MAX];
	size_t got, length;

	if (end <= padding)
		return true;
	if (end > ((padding + 15) & ~UINT64_C(15)))
		return false;
	got = program->read(program->context, padding, bytes, sizeof(bytes));
	for (size_t i = 0; padding + i < end; i += length) {
		length = fay_padding_length(bytes + i, got - i);
		if (!length)
			return false;
	}
	return true;
}

/* The jump that leads to [low, high); SIZE_MAX: none does. */
static size_t jump_into(const struct judging *judging, uint64_t low, uint64_t high, bool calls)
{
	for (size_t i = 0; i < judging->code.step_count; i++) {
		const struct fay_step *step = &judging->code.steps[i];

		if (step->target >= low && step->target < high &&
		    (calls || step->kind != FAY_STEP_CALL))
			return i;
	}
	return SIZE_MAX;
}

/* Where FAY_JUMP_BYTES lead a jump elsewhere: a rel32 is replaced; a short one that ends the
 * function grows over the padding behind it. 0: it cannot be done. */
static uint64_t redirect_of(const struct judging *judging, const struct fay_step *jump)
{
	if (jump->kind == FAY_STEP_JUMP && jump->length == FAY_JUMP_BYTES)
		return jump->at;
	if (jump->kind == FAY_STEP_BRANCH && jump->length == FAY_JUMP_BYTES + 1)
		return jump->at + 1;
	return jump->kind == FAY_STEP_JUMP && jump->length == 2 &&
			       jump->at + jump->length == judging->end &&
			       has_room(judging, jump->at)
		       ? jump->at
		       : 0;
}

static bool begins_endbr64(const struct judging *judging)
{
	const struct fay_code *code = &judging->code;
	uint8_t bytes[4];

	return code->steps[0].length == 4 &&
	       code->program->read(code->program->context, judging->start, bytes, 4) == 4 &&
	       !memcmp(bytes, "\xf3\x0f\x1e\xfa", 4);
}

/* Jumps back to the first instruction are no calls, so they are led past the jump there, to the
 * copy of the displaced instructions. Nothing may lead behind it. */
static bool judge_entry(struct judging *judging, struct fay_place *place)
{
	struct fay_code *code = &judging->code;
	size_t into;

	place->site = judging->start + (begins_endbr64(judging) ? 4 : 0);
	if (!has_room(judging, place->site))
		return fay_code_refuse(code, "is %lu byte%s long, a jump needs %u",
				       offset_of(judging, judging->end),
				       judging->end == judging->start + 1 ? "" : "s",
				       FAY_JUMP_BYTES);
	for (size_t i = 0; i < code->step_count; i++) {
		const struct fay_step *step = &code->steps[i];
		uint64_t redirect;

		if (step->kind == FAY_STEP_CALL ||
		    (step->target != place->site && step->target != judging->start))
			continue;
		redirect = redirect_of(judging, step);
		/* Not among the displaced instructions, which are moved. */
		if (redirect < place->site + FAY_DISPLACED_MAX ||
		    place->redirect_count == FAY_PLACE_REDIRECTS)
			return fay_code_refuse(
				code, "has a loop back to its first instruction (from +%lu)",
				offset_of(judging, step->at));
		place->redirects[place->redirect_count++] = redirect;
	}
	into = jump_into(judging, place->site + 1, place->site + FAY_JUMP_BYTES, false);
	return into == SIZE_MAX ||
	       fay_code_refuse(code, "has a jump into its first %u bytes (from +%lu)",
			       FAY_JUMP_BYTES, offset_of(judging, code->steps[into].at));
}

/* What the jump overwrites runs in one go. */
static bool judge_inside(struct judging *judging, struct fay_place *place)
{
	struct fay_code *code = &judging->code;
	uint64_t end = place->site + FAY_JUMP_BYTES;
	unsigned long offset = offset_of(judging, place->site);
	size_t into = jump_into(judging, place->site + 1, end, false), last = judging->step;

	if (place->site >= judging->end || !has_room(judging, place->site))
		return fay_code_refuse(code, "is %lu bytes long, too short for a jump at +%#lx",
				       offset_of(judging, judging->end), offset);
	if (judging->step == SIZE_MAX)
		return fay_code_refuse(code, "has no instruction that begins at +%#lx", offset);
	if (into != SIZE_MAX)
		return fay_code_refuse(
			code,
			"has a jump (from +%#lx) to between +%#lx and the end of the "
			"jump there",
			offset_of(judging, code->steps[into].at), offset);
	/* what is asked for there is asked of calls */
	for (size_t i = 0; i < code->step_count && judging->first; i++)
		if (code->steps[i].kind != FAY_STEP_CALL && code->steps[i].target == judging->start)
			return fay_code_refuse(
				code, "has a loop back to its first instruction (from +%lu)",
				offset_of(judging, code->steps[i].at));
	while (last + 1 < code->step_count && code->steps[last + 1].at < end)
		if (ends_here(&code->steps[last++]))
			return fay_code_refuse(code,
					       "has a place at +%#lx where other code begins, too "
					       "close after +%#lx",
					       offset_of(judging, code->steps[last].at), offset);
	return last == judging->step || !judging->indirect || judging->first ||
	       fay_code_refuse(code,
			       "has an indirect jump, which may lead past +%#lx; an instruction of "
			       "%u bytes or more can be traced",
			       offset, FAY_JUMP_BYTES);
}

/* Over the instructions before it, of which the place's is then the last overwritten or a later
 * one: a marker's nop is short, and code often joins behind it. */
static bool judge_before(const struct judging *judging, struct fay_place *place)
{
	const struct fay_step *steps = judging->code.steps;
	size_t first = judging->step;
	uint64_t at = place->site, end;

	if (judging->step == SIZE_MAX || judging->indirect)
		return false;
	end = at + steps[judging->step].length;
	while (end - steps[first].at < FAY_JUMP_BYTES) {
		if (first-- == 0 || ends_here(&steps[first]) || steps[first].kind == FAY_STEP_CALL)
			return false;
	}
	place->site = steps[first].at;
	place->back = (uint8_t)(at - place->site);
	return first != judging->step && jump_into(judging, place->site + 1, end, true) == SIZE_MAX;
}

/* The function from start to end; `step` is the instruction that begins at `at`, if one does. */
static bool judging_begin(struct judging *judging, const struct fay_flow_program *program,
			  uint64_t start, uint64_t end, uint64_t at, char reason[FAY_REASON_MAX])
{
	*judging =
		(struct judging){ .code = { .program = program, .reason = reason, .alone = true },
				  .start = start,
				  .end = end };
	if (!fay_code_read(&judging->code, start, end))
		return false;
	judging->step = fay_code_find(&judging->code, at);
	return true;
}

/* No reason: there is no memory. */
static bool judging_end(struct judging *judging, bool good)
{
	if (judging->code.no_memory)
		*judging->code.reason = 0;
	fay_code_deinit(&judging->code);
	return good;
}

bool fay_place_judge(const struct fay_flow_program *program, uint64_t start, uint64_t end,
		     uint64_t at, enum fay_place_kind kind, struct fay_place *place,
		     char reason[FAY_REASON_MAX])
{
	struct judging judging;
	bool good = judging_begin(&judging, program, start, end, at, reason);

	*place = (struct fay_place){ .site = at };
	if (good) {
		for (size_t i = 0; i < judging.code.step_count; i++)
			judging.indirect |= judging.code.steps[i].kind == FAY_STEP_INDIRECT ||
					    judging.code.steps[i].away;
		judging.first =
			kind == FAY_PLACE_AT_FIRST && at == start && !begins_endbr64(&judging);
		good = kind == FAY_PLACE_AT_ENTRY
			       ? judge_entry(&judging, place)
			       : judge_inside(&judging, place) || (kind == FAY_PLACE_AT_MARKER &&
								   judge_before(&judging, place));
	}
	return judging_end(&judging, good);
}

static bool judge_trap(struct judging *judging, uint64_t at, enum fay_place_kind kind)
{
	struct fay_code *code = &judging->code;
	uint8_t byte = 0;

	if (judging->step == SIZE_MAX)
		return fay_code_refuse(code, "has no instruction that begins at +%#lx",
				       offset_of(judging, at));
	code->program->read(code->program->context, at, &byte, 1);
	if (kind == FAY_PLACE_AT_MARKER)
		return byte == NOP ||
		       fay_code_refuse(code, "has no nop at +%#lx", offset_of(judging, at));
	for (size_t i = 0; i < code->step_count && kind == FAY_PLACE_AT_ENTRY; i++)
		if (code->steps[i].kind != FAY_STEP_CALL && code->steps[i].target == at)
			return fay_code_refuse(
				code, "has a loop back to its first instruction (from +%lu)",
				offset_of(judging, code->steps[i].at));
	return byte != INT3 || fay_code_refuse(code, "begins with int3");
}

bool fay_place_traps(const struct fay_flow_program *program, uint64_t start, uint64_t end,
		     uint64_t at, enum fay_place_kind kind, unsigned *length,
		     char reason[FAY_REASON_MAX])
{
	struct judging judging;
	bool good = judging_begin(&judging, program, start, end, at, reason) &&
		    judge_trap(&judging, at, kind);

	if (good)
		*length = judging.code.steps[judging.step].length;
	return judging_end(&judging, good);
}

static bool operand_register(ZydisRegister reg, uint8_t *number)
{
	*number = FAY_OPERAND_NO_REGISTER;
	if (reg != ZYDIS_REGISTER_NONE && fay_line_register(reg) >= 0)
		*number = (uint8_t)fay_line_register(reg);
	return reg == ZYDIS_REGISTER_NONE || *number != FAY_OPERAND_NO_REGISTER;
}

bool fay_jump_operand(const uint8_t *bytes, size_t size, struct fay_operand *operand)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	const ZydisDecodedOperand *to = &operands[0];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	*operand = (struct fay_operand){ .size = 8, .index = FAY_OPERAND_NO_REGISTER };
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, size, &insn, operands)) ||
	    insn.mnemonic != ZYDIS_MNEMONIC_JMP || insn.operand_width != 64 ||
	    insn.address_width != 64 || to->size != 64)
		return false;
	if (to->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		operand->form = FAY_OPERAND_REGISTER;
		return to->reg.value != ZYDIS_REGISTER_NONE &&
		       operand_register(to->reg.value, &operand->base);
	}
	operand->form = FAY_OPERAND_MEMORY;
	operand->scale = to->mem.scale;
	operand->value = to->mem.disp.value;
	return to->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       (to->mem.segment == ZYDIS_REGISTER_DS || to->mem.segment == ZYDIS_REGISTER_SS) &&
	       operand_register(to->mem.base, &operand->base) &&
	       operand_register(to->mem.index, &operand->index);
}
