/* SPDX-License-Identifier: MIT */
/* What registers have at an indirect jump: the straight line of instructions before it is followed
 * with the few kinds of values that flow_indirect.c judges. */
#include "flow_private.h"

#define LINE_STEPS 32u /* before the jump */

struct line {
	struct fay_line_value regs[16];
	uint64_t unknowns;
};

int fay_line_register(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15
		       ? (int)(whole - ZYDIS_REGISTER_RAX)
		       : -1;
}

static struct fay_line_value value_of(const struct line *line, ZydisRegister reg)
{
	int number = fay_line_register(reg);

	return number < 0 ? (struct fay_line_value){ 0 } : line->regs[number];
}

/* The address at which what an operand indexes begins: an unknown or a constant; else
 * FAY_LINE_OTHER. */
static struct fay_line_value table_of(const struct line *line, const ZydisDecodedOperand *memory)
{
	struct fay_line_value base = value_of(line, memory->mem.base),
			      index = value_of(line, memory->mem.index);
	uint64_t disp = memory->mem.disp.has_displacement ? (uint64_t)memory->mem.disp.value : 0;

	if (memory->mem.segment == ZYDIS_REGISTER_FS || memory->mem.segment == ZYDIS_REGISTER_GS)
		return (struct fay_line_value){ 0 };
	if (memory->mem.base == ZYDIS_REGISTER_NONE)
		return (struct fay_line_value){ .of = disp, .kind = FAY_LINE_CONSTANT };
	/* without optimisation: the index is scaled before */
	if (memory->mem.scale == 1 && index.kind == FAY_LINE_CONSTANT)
		base = index;
	if (base.kind == FAY_LINE_CONSTANT)
		return (struct fay_line_value){ .of = base.of + disp, .kind = FAY_LINE_CONSTANT };
	return base.kind == FAY_LINE_UNKNOWN && !disp ? base : (struct fay_line_value){ 0 };
}

static struct fay_line_value loaded(const struct line *line, const ZydisDecodedOperand *memory)
{
	struct fay_line_value table = table_of(line, memory);
	bool indexed = memory->mem.index != ZYDIS_REGISTER_NONE;

	if (memory->size == 64)
		return (struct fay_line_value){ .kind = FAY_LINE_POINTER,
						.of = indexed && table.kind == FAY_LINE_CONSTANT
							      ? table.of
							      : 0 };
	if (memory->size == 32 && table.kind != FAY_LINE_OTHER)
		return (struct fay_line_value){ .kind = FAY_LINE_DISTANCE,
						.of = table.of,
						.constant = table.kind == FAY_LINE_CONSTANT };
	return (struct fay_line_value){ 0 };
}

static struct fay_line_value sum(struct fay_line_value a, struct fay_line_value b)
{
	struct fay_line_value from = a.kind == FAY_LINE_DISTANCE ? a : b,
			      to = a.kind == FAY_LINE_DISTANCE ? b : a;

	if (from.kind != FAY_LINE_DISTANCE || (from.of != to.of && !from.constant) ||
	    to.kind != (from.constant ? FAY_LINE_CONSTANT : FAY_LINE_UNKNOWN))
		return (struct fay_line_value){ 0 };
	from.kind = FAY_LINE_TABLE;
	from.from = to.of;
	return from;
}

bool fay_line_in_frame(const ZydisDecodedOperand *memory)
{
	return memory->type == ZYDIS_OPERAND_TYPE_MEMORY && memory->size == 64 &&
	       memory->mem.index == ZYDIS_REGISTER_NONE &&
	       (memory->mem.base == ZYDIS_REGISTER_RSP || memory->mem.base == ZYDIS_REGISTER_RBP) &&
	       memory->mem.segment == ZYDIS_REGISTER_SS;
}

bool fay_line_rip_relative(const ZydisDecodedOperand *memory)
{
	return memory->type == ZYDIS_OPERAND_TYPE_MEMORY && memory->mem.base == ZYDIS_REGISTER_RIP;
}

bool fay_line_hides_pointer(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *from)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_ROR ||
	       (insn->mnemonic == ZYDIS_MNEMONIC_XOR && from->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		from->mem.segment == ZYDIS_REGISTER_FS);
}

/* What an instruction's first operand, a register, has then; FAY_LINE_OTHER: nothing of these. */
static struct fay_line_value result_of(struct line *line, uint64_t behind,
				       const ZydisDecodedInstruction *insn,
				       const ZydisDecodedOperand *operands)
{
	const ZydisDecodedOperand *from = &operands[1];
	struct fay_line_value first = value_of(line, operands[0].reg.value),
			      second = value_of(line, from->reg.value);

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVSXD:
		if (fay_line_in_frame(from))
			return (struct fay_line_value){ .kind = FAY_LINE_UNKNOWN,
							.of = ++line->unknowns };
		if (from->type == ZYDIS_OPERAND_TYPE_MEMORY)
			return fay_line_rip_relative(from)
				       ? (struct fay_line_value){ .kind = from->size == 64
										  ? FAY_LINE_POINTER
										  : FAY_LINE_OTHER }
				       : loaded(line, from);
		if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return (struct fay_line_value){ .kind = FAY_LINE_CONSTANT,
							.of = from->size == 32
								      ? (uint32_t)from->imm.value.u
								      : from->imm.value.u };
		return from->size == 64 || second.kind == FAY_LINE_DISTANCE
			       ? second
			       : (struct fay_line_value){ 0 };
	case ZYDIS_MNEMONIC_POP: return (struct fay_line_value){ .kind = FAY_LINE_POINTER };
	case ZYDIS_MNEMONIC_CDQE:
		return first.kind == FAY_LINE_DISTANCE ? first : (struct fay_line_value){ 0 };
	case ZYDIS_MNEMONIC_LEA:
		return fay_line_rip_relative(from)
			       ? (struct fay_line_value){ .kind = FAY_LINE_CONSTANT,
							  .of = behind +
								(uint64_t)from->mem.disp.value }
			       : (struct fay_line_value){ 0 };
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_XOR:
		return fay_line_hides_pointer(insn, from) && (first.kind == FAY_LINE_UNKNOWN ||
							      first.kind == FAY_LINE_POINTER)
			       ? first
			       : (struct fay_line_value){ 0 };
	case ZYDIS_MNEMONIC_ADD:
		return from->type == ZYDIS_OPERAND_TYPE_REGISTER ? sum(first, second)
								 : (struct fay_line_value){ 0 };
	default: return (struct fay_line_value){ 0 };
	}
}

static void follow(struct line *line, uint64_t behind, const ZydisDecodedInstruction *insn,
		   const ZydisDecodedOperand *operands)
{
	struct fay_line_value result = { 0 };
	int to = -1;

	if (insn->operand_count && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		result = result_of(line, behind, insn, operands);
		to = fay_line_register(operands[0].reg.value);
	}
	for (unsigned i = 0; i < insn->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    fay_line_register(operands[i].reg.value) >= 0)
			line->regs[fay_line_register(operands[i].reg.value)] =
				(struct fay_line_value){ 0 };
	if (to >= 0 && operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		line->regs[to] = result;
}

bool fay_line_target(const struct fay_code *code, size_t jump, struct fay_line_value *target,
		     size_t *begin)
{
	struct line line = { .unknowns = 0 };
	ZydisDecoder decoder;
	size_t first = jump;

	*target = (struct fay_line_value){ 0 };
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (unsigned i = 0; i < 16; i++)
		line.regs[i] =
			(struct fay_line_value){ .kind = FAY_LINE_UNKNOWN, .of = ++line.unknowns };
	while (first > 0 && first + LINE_STEPS > jump && fay_code_follows(code, first) &&
	       !code->steps[first].first_join && !code->steps[first].entered &&
	       code->steps[first - 1].kind != FAY_STEP_CALL &&
	       code->steps[first - 1].kind != FAY_STEP_FIXED &&
	       !fay_step_ends(&code->steps[first - 1]))
		first--;
	*begin = first;
	for (size_t i = first; i <= jump; i++) {
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction insn;
		uint8_t bytes[16];
		const struct fay_step *step = &code->steps[i];

		if (code->program->read(code->program->context, step->at, bytes, step->length) !=
			    step->length ||
		    !ZYAN_SUCCESS(
			    ZydisDecoderDecodeFull(&decoder, bytes, step->length, &insn, operands)))
			return false;
		if (i < jump)
			follow(&line, step->at + step->length, &insn, operands);
		else if (operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
			*target = value_of(&line, operands[0].reg.value);
		else
			*target = fay_line_rip_relative(&operands[0])
					  ? (struct fay_line_value){ .kind = FAY_LINE_POINTER }
					  : loaded(&line, &operands[0]);
	}
	return true;
}
