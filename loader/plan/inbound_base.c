/* SPDX-License-Identifier: MIT */
/*
 * What other code of a module does with a function's address besides branches into it (inbound.c):
 *
 *	a lea of a function's start whose register has something added soon: it may be the base of
 *	  distances to any of the function's instructions, which is not traced
 *	a call behind which flags are used: they are the function's
 */
#include "plan_private.h"

#include <stdio.h>

#include <Zydis/Zydis.h>

#define BASE_STEPS 16u /* a lea, and instructions behind it that may add to what it sets */
#define BASE_BYTES 96u /* of these */

/* jcc, setcc, cmovcc, adc, sbb, pushf, lahf */
static bool uses_flags(const uint8_t *bytes)
{
	if (bytes[0] == 0x0f)
		return (bytes[1] & 0xf0) == 0x40 || (bytes[1] & 0xf0) == 0x80 ||
		       (bytes[1] & 0xf0) == 0x90;
	bytes += (bytes[0] & 0xf0) == 0x40; /* rex */
	return (bytes[0] & 0xf0) == 0x70 || (bytes[0] & 0xf0) == 0x10 || bytes[0] == 0x9c ||
	       bytes[0] == 0x9f ||
	       (bytes[0] >= 0x80 && bytes[0] <= 0x83 &&
		((bytes[1] & 0x38) == 0x10 || (bytes[1] & 0x38) == 0x18)) ||
	       (bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x40);
}

void fay_inbound_note_flags(const struct fay_plan *plan, const uint8_t *behind, uint64_t to)
{
	struct fay_point *point = uses_flags(behind) ? fay_points_at(plan, to) : NULL;

	if (point)
		point->careful = true;
}

static ZydisRegister whole_register(ZydisRegister part)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);
}

/*
 * Whether the register gets another one, or what is in memory, added, or is added to one.
 * *set: it is another value from here on.
 */
static bool adds_to(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands,
		    ZydisRegister base, bool *set)
{
	bool sums = insn->mnemonic == ZYDIS_MNEMONIC_ADD || insn->mnemonic == ZYDIS_MNEMONIC_XADD;
	bool other = false, mine = false;

	for (unsigned i = 0; i < insn->operand_count; i++) {
		const ZydisDecodedOperand *operand = &operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    whole_register(operand->reg.value) == base) {
			mine = true;
			*set |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) && !sums;
		} else if (operand->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
			   operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			other = true;
		}
		if (insn->mnemonic == ZYDIS_MNEMONIC_LEA &&
		    operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    operand->mem.index != ZYDIS_REGISTER_NONE &&
		    (whole_register(operand->mem.base) == base ||
		     whole_register(operand->mem.index) == base))
			return true;
	}
	return sums && mine && other;
}

/* Whether distances are added to what the lea at `source`, perhaps behind a prefix, sets. */
static bool is_base(struct fay_program_text *program, uint64_t source)
{
	uint8_t bytes[BASE_BYTES] = { 0 };
	size_t size = fay_text_program(program, source - 1, bytes, sizeof(bytes));
	size_t at = (bytes[0] & 0xf0) != 0x40; /* rex */
	ZydisRegister base = ZYDIS_REGISTER_NONE;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (unsigned step = 0; step < BASE_STEPS && at < size; step++, at += insn.length) {
		bool set = false;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, size - at, &insn,
							 operands)))
			return false;
		if (step == 0) {
			base = whole_register(operands[0].reg.value);
			continue;
		}
		if (adds_to(&insn, operands, base, &set))
			return true;
		if (set)
			return false;
	}
	return false;
}

int fay_inbound_refuse_base(struct fay_plan *plan, struct fay_program_text *program,
			    const char *module, uint64_t bias, uint64_t source, uint64_t start)
{
	struct fay_point *point = fay_points_at(plan, start);
	char reason[FAY_REASON_MAX];

	if (!point || !is_base(program, source))
		return 0;
	snprintf(reason, sizeof(reason),
		 "may be entered anywhere by what adds to its address, another function "
		 "(at %s+%#lx)",
		 module, (unsigned long)(source - bias));
	point->others_end = true;
	/* places inside a function follow its start */
	for (; point < plan->points + plan->point_count &&
	       point->function.address - point->offset == start;
	     point++)
		if (point->usable && point->site_count && !fay_point_has(point, source) &&
		    fay_site_refuse(plan, &plan->sites[point->first_site], reason))
			return -1;
	return 0;
}
