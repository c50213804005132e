/* SPDX-License-Identifier: MIT */
/*
 * Where a function's indirect jumps lead: out of it, or to places in it that are all known. The
 * straight line of instructions before the jump is followed with a few kinds of values, so that
 * nothing depends on how a compiler orders them:
 *
 *	table + distance   read from a table of 32-bit distances from itself, all read
 *	table of pointers  at a known address: its words tell
 *	pointer, register  a label whose address is taken, or another function: known if there is no
 *			   such label, or if the stack is not as it was at the function's begin
 *
 * Anything else leads nobody knows where: the function's exits are refused. Of a register that is
 * set before the straight line begins, all instructions are looked for that may have set it.
 */
#include "flow_private.h"

#include <stdlib.h>

#define LINE_STEPS 32u /* before the jump */
#define TABLE_WORDS_MAX (1u << 14)
#define SEARCH_MAX (1u << 24) /* steps that are looked at for what sets a register */

enum value_kind {
	VALUE_OTHER,
	VALUE_CONSTANT, /* `of` */
	/* whatever a register, or a place of the frame, had; `of` tells one from another: registers
	 * are 1 to 16 */
	VALUE_UNKNOWN,
	/* 32 bits from a table, sign-extended; `of`: where it begins, a constant or an unknown */
	VALUE_DISTANCE,
	VALUE_TABLE, /* that and the table's address */
	/* 64 bits of memory; `of`: the table's address, if it is one and known; else 0 */
	VALUE_POINTER,
};
struct value {
	uint64_t of;
	uint8_t kind;
	bool constant; /* `of` is an address */
};
struct line {
	struct value regs[16];
	uint64_t unknowns;
};

static int number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15
		       ? (int)(whole - ZYDIS_REGISTER_RAX)
		       : -1;
}

static struct value value_of(const struct line *line, ZydisRegister reg)
{
	int number = number_of(reg);

	return number < 0 ? (struct value){ 0 } : line->regs[number];
}

/* The address at which what an operand indexes begins: an unknown or a constant; else
 * VALUE_OTHER. */
static struct value table_of(const struct line *line, const ZydisDecodedOperand *memory)
{
	struct value base = value_of(line, memory->mem.base),
		     index = value_of(line, memory->mem.index);
	uint64_t disp = memory->mem.disp.has_displacement ? (uint64_t)memory->mem.disp.value : 0;

	if (memory->mem.segment == ZYDIS_REGISTER_FS || memory->mem.segment == ZYDIS_REGISTER_GS)
		return (struct value){ 0 };
	if (memory->mem.base == ZYDIS_REGISTER_NONE)
		return (struct value){ .of = disp, .kind = VALUE_CONSTANT };
	/* without optimisation: the index is scaled before */
	if (memory->mem.scale == 1 && index.kind == VALUE_CONSTANT)
		base = index;
	if (base.kind == VALUE_CONSTANT)
		return (struct value){ .of = base.of + disp, .kind = VALUE_CONSTANT };
	return base.kind == VALUE_UNKNOWN && !disp ? base : (struct value){ 0 };
}

static struct value loaded(const struct line *line, const ZydisDecodedOperand *memory)
{
	struct value table = table_of(line, memory);
	bool indexed = memory->mem.index != ZYDIS_REGISTER_NONE;

	if (memory->size == 64)
		return (struct value){ .kind = VALUE_POINTER,
				       .of = indexed && table.kind == VALUE_CONSTANT ? table.of
										     : 0 };
	if (memory->size == 32 && table.kind != VALUE_OTHER)
		return (struct value){ .kind = VALUE_DISTANCE,
				       .of = table.of,
				       .constant = table.kind == VALUE_CONSTANT };
	return (struct value){ 0 };
}

static struct value sum(struct value a, struct value b)
{
	struct value from = a.kind == VALUE_DISTANCE ? a : b, to = a.kind == VALUE_DISTANCE ? b : a;

	if (from.kind != VALUE_DISTANCE || from.of != to.of ||
	    to.kind != (from.constant ? VALUE_CONSTANT : VALUE_UNKNOWN))
		return (struct value){ 0 };
	from.kind = VALUE_TABLE;
	return from;
}

/* A compiler keeps there what it finds no register for. */
static bool is_in_frame(const ZydisDecodedOperand *memory)
{
	return memory->type == ZYDIS_OPERAND_TYPE_MEMORY && memory->size == 64 &&
	       memory->mem.index == ZYDIS_REGISTER_NONE &&
	       (memory->mem.base == ZYDIS_REGISTER_RSP || memory->mem.base == ZYDIS_REGISTER_RBP) &&
	       memory->mem.segment == ZYDIS_REGISTER_SS;
}

static bool is_rip_relative(const ZydisDecodedOperand *memory)
{
	return memory->type == ZYDIS_OPERAND_TYPE_MEMORY && memory->mem.base == ZYDIS_REGISTER_RIP;
}

/* As glibc's PTR_DEMANGLE does: the pointer is turned, and mixed with a word of the thread's. */
static bool hides_pointer(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *from)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_ROR ||
	       (insn->mnemonic == ZYDIS_MNEMONIC_XOR && from->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		from->mem.segment == ZYDIS_REGISTER_FS);
}

/* What an instruction's first operand, a register, has then; VALUE_OTHER: nothing of the above. */
static struct value result_of(struct line *line, uint64_t behind,
			      const ZydisDecodedInstruction *insn,
			      const ZydisDecodedOperand *operands)
{
	const ZydisDecodedOperand *from = &operands[1];
	struct value first = value_of(line, operands[0].reg.value),
		     second = value_of(line, from->reg.value);

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVSXD:
		if (is_in_frame(from))
			return (struct value){ .kind = VALUE_UNKNOWN, .of = ++line->unknowns };
		if (from->type == ZYDIS_OPERAND_TYPE_MEMORY)
			return is_rip_relative(from)
				       ? (struct value){ .kind = from->size == 64 ? VALUE_POINTER
										  : VALUE_OTHER }
				       : loaded(line, from);
		if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return (struct value){ .kind = VALUE_CONSTANT,
					       .of = from->size == 32 ? (uint32_t)from->imm.value.u
								      : from->imm.value.u };
		return from->size == 64 || second.kind == VALUE_DISTANCE ? second
									 : (struct value){ 0 };
	case ZYDIS_MNEMONIC_POP: return (struct value){ .kind = VALUE_POINTER };
	case ZYDIS_MNEMONIC_CDQE: return first.kind == VALUE_DISTANCE ? first : (struct value){ 0 };
	case ZYDIS_MNEMONIC_LEA:
		return is_rip_relative(from)
			       ? (struct value){ .kind = VALUE_CONSTANT,
						 .of = behind + (uint64_t)from->mem.disp.value }
			       : (struct value){ 0 };
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_XOR:
		return hides_pointer(insn, from) &&
				       (first.kind == VALUE_UNKNOWN || first.kind == VALUE_POINTER)
			       ? first
			       : (struct value){ 0 };
	case ZYDIS_MNEMONIC_ADD:
		return from->type == ZYDIS_OPERAND_TYPE_REGISTER ? sum(first, second)
								 : (struct value){ 0 };
	default: return (struct value){ 0 };
	}
}

static void follow(struct line *line, uint64_t behind, const ZydisDecodedInstruction *insn,
		   const ZydisDecodedOperand *operands)
{
	struct value result = { 0 };
	int to = -1;

	if (insn->operand_count && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		result = result_of(line, behind, insn, operands);
		to = number_of(operands[0].reg.value);
	}
	for (unsigned i = 0; i < insn->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    number_of(operands[i].reg.value) >= 0)
			line->regs[number_of(operands[i].reg.value)] = (struct value){ 0 };
	if (to >= 0 && operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		line->regs[to] = result;
}

/* The words of a table of pointers that lead into the function: how many. */
static size_t read_pointers(struct fay_code *code, uint64_t table)
{
	uint64_t words[64];
	size_t inside = 0;

	for (size_t read = 0, got = 64; read < TABLE_WORDS_MAX && got == 64; read += 64) {
		got = code->program->read(code->program->context, table + 8 * read, words,
					  sizeof(words)) /
		      8;
		for (size_t i = 0; i < got; i++) {
			size_t step = fay_code_find(code, words[i]);

			if (step == SIZE_MAX)
				return inside;
			fay_step_enter(&code->steps[step]);
			inside++;
		}
	}
	return inside;
}

static bool has_entries(const struct fay_code *code, uint64_t table)
{
	for (size_t i = 0; i < code->table_count; i++)
		if (code->tables[i] == table)
			return true;
	return false;
}

/* What the jump's operand has, and where the line begins. */
static bool target_of(const struct fay_code *code, size_t jump, struct value *target, size_t *begin)
{
	struct line line = { .unknowns = 0 };
	ZydisDecoder decoder;
	size_t first = jump;

	*target = (struct value){ 0 };
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (unsigned i = 0; i < 16; i++)
		line.regs[i] = (struct value){ .kind = VALUE_UNKNOWN, .of = ++line.unknowns };
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
			*target = is_rip_relative(&operands[0])
					  ? (struct value){ .kind = VALUE_POINTER }
					  : loaded(&line, &operands[0]);
	}
	return true;
}

#define CALLER_SAVED 0x0fc7u /* rax, rcx, rdx, rsi, rdi, r8 to r11 */

/* Searching for what may have set a register before a step. */
struct search {
	const struct fay_code *code;
	enum sought {
		SOUGHT_TABLE, /* the address of a table of distances that was read */
		SOUGHT_LABEL, /* a pointer from a table of pointers that lead to known labels */
		SOUGHT_ANY,   /* whatever a program has that jumps to a pointer's value */
	} sought;
	uint16_t *seen; /* by step: registers */
	struct wanted {
		uint32_t step;
		uint8_t reg;
	} *queue;
	size_t count;
	/* registers that were looked for in front of all indirect jumps, and behind all calls */
	uint16_t anywhere[2];
	size_t work;
};

static void want(struct search *s, size_t step, unsigned reg)
{
	if (s->seen[step] >> reg & 1)
		return;
	s->seen[step] |= (uint16_t)(1u << reg);
	s->queue[s->count++] = (struct wanted){ (uint32_t)step, (uint8_t)reg };
}

/* Whether the operand is read from a table at a known address, of pointers to labels. */
static bool is_of_labels(const struct fay_code *code, const ZydisDecodedOperand *memory)
{
	uint64_t word, table = (uint64_t)memory->mem.disp.value;
	size_t step;

	if (memory->type != ZYDIS_OPERAND_TYPE_MEMORY || memory->size != 64 ||
	    memory->mem.base != ZYDIS_REGISTER_NONE || memory->mem.index == ZYDIS_REGISTER_NONE ||
	    memory->mem.segment != ZYDIS_REGISTER_DS ||
	    code->program->read(code->program->context, table, &word, 8) != 8)
		return false;
	step = fay_code_find(code, word);
	return step != SIZE_MAX && code->steps[step].label && code->steps[step].entered;
}

/* The register was set by this instruction. False: to something else. */
static bool fits(struct search *s, size_t step, unsigned reg, const ZydisDecodedInstruction *insn,
		 const ZydisDecodedOperand *operands)
{
	const ZydisDecodedOperand *from = &operands[1];
	uint64_t behind = s->code->steps[step].at + s->code->steps[step].length;
	bool whole = insn->operand_width == 64 && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		     number_of(operands[0].reg.value) == (int)reg;
	bool moves =
		insn->mnemonic == ZYDIS_MNEMONIC_MOV || insn->meta.category == ZYDIS_CATEGORY_CMOV;

	if (insn->mnemonic == ZYDIS_MNEMONIC_MOV && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return s->sought == SOUGHT_ANY ||
		       (s->sought == SOUGHT_TABLE &&
			has_entries(s->code, from->size == 32 ? (uint32_t)from->imm.value.u
							      : from->imm.value.u));
	if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && whole && is_rip_relative(from))
		return s->sought == SOUGHT_ANY ||
		       (s->sought == SOUGHT_TABLE &&
			has_entries(s->code, behind + (uint64_t)from->mem.disp.value));
	if (insn->mnemonic == ZYDIS_MNEMONIC_POP ||
	    (insn->mnemonic == ZYDIS_MNEMONIC_XOR && operands[0].reg.value == from->reg.value))
		return s->sought == SOUGHT_ANY;
	if (s->sought == SOUGHT_ANY && whole && hides_pointer(insn, from))
		return want(s, step, reg), true;
	if (!moves || !whole)
		return false;
	if (insn->mnemonic != ZYDIS_MNEMONIC_MOV)
		want(s, step, reg); /* or it stays */
	if (from->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return s->sought == SOUGHT_ANY ||
		       (s->sought == SOUGHT_LABEL && is_of_labels(s->code, from)) ||
		       (s->sought == SOUGHT_TABLE && is_in_frame(from) && s->code->table_count);
	if (number_of(from->reg.value) >= 0)
		want(s, step, (unsigned)number_of(from->reg.value));
	return true;
}

/* What the register has behind the instruction. */
static bool look_at(struct search *s, size_t step, unsigned reg)
{
	const struct fay_step *at = &s->code->steps[step];
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	uint8_t bytes[16];

	if (at->kind == FAY_STEP_CALL && CALLER_SAVED >> reg & 1)
		return s->sought == SOUGHT_ANY;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (s->code->program->read(s->code->program->context, at->at, bytes, at->length) !=
		    at->length ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, at->length, &insn, operands)))
		return false;
	for (unsigned i = 0; i < insn.operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    number_of(operands[i].reg.value) == (int)reg)
			return fits(s, step, reg, &insn, operands);
	want(s, step, reg);
	return true;
}

/* All steps of a kind may come before; of jumps that read other tables than this it is known that
 * they do not. */
static bool want_before(struct search *s, enum fay_step_kind kind, uint64_t table, unsigned reg)
{
	s->work += s->code->step_count;
	for (size_t i = 0; i < s->code->step_count && s->work <= SEARCH_MAX; i++)
		if (s->code->steps[i].kind == kind &&
		    (!table || !s->code->steps[i].reads || s->code->steps[i].reads == table))
			want(s, i, reg);
	return s->work <= SEARCH_MAX;
}

/* From indirect jumps, or, to a handler of exceptions, from calls, which keep the registers that
 * are not theirs. */
static bool look_anywhere(struct search *s, unsigned reg, bool handler)
{
	if (handler && CALLER_SAVED >> reg & 1)
		return s->sought == SOUGHT_ANY;
	if (s->anywhere[handler] >> reg & 1)
		return true;
	s->anywhere[handler] |= (uint16_t)(1u << reg);
	return want_before(s, handler ? FAY_STEP_CALL : FAY_STEP_INDIRECT, 0, reg);
}

static bool search_all(struct search *s)
{
	const struct fay_code *code = s->code;
	bool found = true;

	while (s->count && found) {
		struct wanted wanted = s->queue[--s->count];
		const struct fay_step *step = &code->steps[wanted.step];

		if (wanted.step == code->regions[0].first)
			found = s->sought == SOUGHT_ANY;
		if (fay_code_follows(code, wanted.step) &&
		    !fay_step_ends(&code->steps[wanted.step - 1]))
			found &= look_at(s, wanted.step - 1, wanted.reg);
		for (uint32_t join = step->first_join; join; join = code->steps[join - 1].next_join)
			want(s, join - 1, wanted.reg);
		if (step->table)
			found &= want_before(s, FAY_STEP_INDIRECT, step->table, wanted.reg);
		else if (step->entered && !step->returned)
			found &= look_anywhere(s, wanted.reg, false) &&
				 (!step->handler || look_anywhere(s, wanted.reg, true));
	}
	return found;
}

/* Whether all that may have set the register before the step fits, and there is memory. */
static bool is_set_well(const struct fay_code *code, size_t step, unsigned reg, enum sought sought)
{
	struct search s = { .code = code,
			    .sought = sought,
			    .seen = calloc(code->step_count, sizeof(*s.seen)),
			    .queue = malloc(16 * code->step_count * sizeof(*s.queue)) };
	bool found = false;

	if (s.seen && s.queue) {
		want(&s, step, reg);
		found = search_all(&s);
	}
	free(s.seen);
	free(s.queue);
	return found;
}

static bool any_label(const struct fay_code *code)
{
	for (size_t i = 0; i < code->step_count; i++)
		if (code->steps[i].label && i != code->regions[0].first)
			return true;
	return false;
}

/* To an address from another stack, as a ret would: unwinders, and OCaml's raise. */
static bool returns_elsewhere(const struct fay_code *code, size_t begin, size_t jump)
{
	for (size_t i = begin; i < jump; i++)
		if (code->steps[i].moves_stack)
			return true;
	return false;
}

/* False: refused. */
static bool judge(struct fay_code *code, size_t jump, size_t begin, const struct value *target,
		  bool labels)
{
	struct fay_step *step = &code->steps[jump];
	unsigned reg = (unsigned)target->of - 1;
	bool known = false, spilled = target->kind == VALUE_UNKNOWN && target->of > 16;

	switch (spilled ? VALUE_POINTER : target->kind) {
	case VALUE_TABLE:
		known = target->constant ? has_entries(code, target->of)
			: reg < 16       ? is_set_well(code, begin, reg, SOUGHT_TABLE)
					 : code->table_count > 0;
		break;
	case VALUE_POINTER:
		if (returns_elsewhere(code, begin, jump)) {
			/* else the call is left: which is noticed when its place on the stack is
			 * used again */
			step->exit = code->program->unwinder;
			return true;
		}
		if (!spilled && target->of && read_pointers(code, target->of))
			return true;
		known = labels ? step->depth > 0 : step->depth <= 0;
		step->exit = known && !labels;
		break;
	case VALUE_UNKNOWN:
		step->exit =
			!labels && step->depth <= 0 && is_set_well(code, begin, reg, SOUGHT_ANY);
		known = step->exit || (labels && is_set_well(code, begin, reg, SOUGHT_LABEL));
		break;
	default: break;
	}
	return known ||
	       fay_code_refuse(code,
			       "has an indirect jump at +%#lx, and where that leads is not known",
			       (unsigned long)(step->at - code->regions[0].start));
}

bool fay_code_resolve_indirect(struct fay_code *code)
{
	bool labels = any_label(code);
	struct value target;
	size_t begin;

	/* where tables of pointers lead; then who reads which table; then all else */
	for (unsigned round = 0; round < 2; round++)
		for (size_t i = 0; i < code->step_count; i++) {
			if (code->steps[i].kind != FAY_STEP_INDIRECT ||
			    !target_of(code, i, &target, &begin))
				continue;
			if (round == 0 && target.kind == VALUE_POINTER && target.of)
				read_pointers(code, target.of);
			if (round == 1 && target.kind == VALUE_TABLE && target.constant &&
			    has_entries(code, target.of))
				code->steps[i].reads = target.of;
		}
	for (size_t i = 0; i < code->step_count; i++) {
		if (code->steps[i].kind != FAY_STEP_INDIRECT)
			continue;
		if (!target_of(code, i, &target, &begin))
			return fay_code_refuse(code, "has bytes that are not an instruction");
		if (!judge(code, i, begin, &target, labels))
			return false;
	}
	return true;
}
