/* SPDX-License-Identifier: MIT */
/*
 * Where a function's indirect jumps lead: out of it, or to places in it that are all known. The
 * straight line of instructions before the jump is followed with a few kinds of values, so that
 * nothing depends on how a compiler orders them:
 *
 *	table + distance   read from a table of 32-bit distances from itself, all read
 *	label + distance   likewise from a label of the function (differences of labels in GNU C)
 *	label              that one
 *	table of pointers  at a known address: its words tell
 *	pointer, register  a label whose address is taken, or another function: known if there is no
 *			   such label, or if the stack is not as it was at the function's begin
 *
 * Anything else leads nobody knows where: the function's exits are refused. Of a register that is
 * set before the straight line begins, all instructions are looked for that may have set it.
 */
#include "flow_private.h"

#include <stdlib.h>

#define TABLE_WORDS_MAX (1u << 14)
#define SEARCH_MAX (1u << 24) /* steps that are looked at for what sets a register */

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

static bool has_entries(const struct fay_code *code, uint64_t table, uint64_t from)
{
	for (size_t i = 0; i < code->table_count; i++)
		if (code->tables[i].table == table && code->tables[i].from == from)
			return true;
	return false;
}

/* Of distances from itself. */
static bool is_table(const struct fay_code *code, uint64_t address)
{
	return has_entries(code, address, address);
}

/* Whether there is any. */
static bool has_tables(const struct fay_code *code)
{
	for (size_t i = 0; i < code->table_count; i++)
		if (code->tables[i].table == code->tables[i].from)
			return true;
	return false;
}

/* A table of distances from a label, as long as they lead into the function; where to is entered,
 * if asked. False: it does not end, or not by what leads to no function, nor to a part of one. */
static bool read_distances(struct fay_code *code, uint64_t table, uint64_t from, bool enter)
{
	const struct fay_flow_program *program = code->program;
	int32_t words[64];
	uint64_t start, end;

	for (size_t read = 0; read < FAY_FLOW_TABLE_MAX; read += 64) {
		size_t got =
			program->read(program->context, table + 4 * read, words, sizeof(words)) / 4;

		for (size_t i = 0; i < got; i++) {
			uint64_t to = from + (uint64_t)(int64_t)words[i];
			size_t step = fay_code_find(code, to);

			if (step == SIZE_MAX)
				return read + i && program->place(program->context, to, &start,
								  &end) == FAY_PLACE_UNKNOWN;
			if (enter)
				fay_step_enter_by(&code->steps[step], table);
		}
		if (got < 64)
			return read + got;
	}
	return false;
}

static bool is_label(const struct fay_code *code, uint64_t address)
{
	size_t step = fay_code_find(code, address);

	return step != SIZE_MAX && code->steps[step].label && code->steps[step].entered;
}

#define CALLER_SAVED 0x0fc7u /* rax, rcx, rdx, rsi, rdi, r8 to r11 */

/* Searching for what may have set a register before a step. */
struct search {
	const struct fay_code *code;
	enum sought {
		SOUGHT_TABLE, /* the address of a table of distances that was read */
		SOUGHT_LABEL, /* a known label, also from a table of pointers */
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
		     fay_line_register(operands[0].reg.value) == (int)reg;
	bool moves =
		insn->mnemonic == ZYDIS_MNEMONIC_MOV || insn->meta.category == ZYDIS_CATEGORY_CMOV;

	if (insn->mnemonic == ZYDIS_MNEMONIC_MOV && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return s->sought == SOUGHT_ANY ||
		       (s->sought == SOUGHT_TABLE &&
			is_table(s->code, from->size == 32 ? (uint32_t)from->imm.value.u
							   : from->imm.value.u));
	if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && whole && fay_line_rip_relative(from))
		return s->sought == SOUGHT_ANY ||
		       (s->sought == SOUGHT_TABLE
				? is_table(s->code, behind + (uint64_t)from->mem.disp.value)
				: is_label(s->code, behind + (uint64_t)from->mem.disp.value));
	if (insn->mnemonic == ZYDIS_MNEMONIC_POP ||
	    (insn->mnemonic == ZYDIS_MNEMONIC_XOR && operands[0].reg.value == from->reg.value))
		return s->sought == SOUGHT_ANY;
	if (s->sought == SOUGHT_ANY && whole && fay_line_hides_pointer(insn, from))
		return want(s, step, reg), true;
	if (!moves || !whole)
		return false;
	if (insn->mnemonic != ZYDIS_MNEMONIC_MOV)
		want(s, step, reg); /* or it stays */
	if (from->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return s->sought == SOUGHT_ANY ||
		       (s->sought == SOUGHT_LABEL && is_of_labels(s->code, from)) ||
		       (s->sought == SOUGHT_TABLE && fay_line_in_frame(from) &&
			has_tables(s->code));
	if (fay_line_register(from->reg.value) >= 0)
		want(s, step, (unsigned)fay_line_register(from->reg.value));
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
		    fay_line_register(operands[i].reg.value) == (int)reg)
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

/* False: where it leads is not known. */
static bool judge(struct fay_code *code, size_t jump, size_t begin,
		  const struct fay_line_value *target, bool labels)
{
	struct fay_step *step = &code->steps[jump];
	unsigned reg = (unsigned)target->of - 1;
	bool known = false, spilled = target->kind == FAY_LINE_UNKNOWN && target->of > 16;

	switch (spilled ? FAY_LINE_POINTER : target->kind) {
	case FAY_LINE_TABLE:
		known = target->constant ? has_entries(code, target->of, target->from)
			: reg < 16       ? is_set_well(code, begin, reg, SOUGHT_TABLE)
					 : has_tables(code);
		break;
	case FAY_LINE_POINTER:
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
	case FAY_LINE_UNKNOWN:
		step->exit =
			!labels && step->depth <= 0 && is_set_well(code, begin, reg, SOUGHT_ANY);
		known = step->exit || (labels && is_set_well(code, begin, reg, SOUGHT_LABEL));
		break;
	case FAY_LINE_CONSTANT: known = is_label(code, target->of); break;
	default: break;
	}
	return known;
}

/* A jump to a label, and a distance from there that a table has. */
static bool reads_labels(const struct fay_code *code, size_t jump, struct fay_line_value *target)
{
	size_t begin;

	return code->steps[jump].kind == FAY_STEP_INDIRECT &&
	       fay_line_target(code, jump, target, &begin) && target->kind == FAY_LINE_TABLE &&
	       target->constant && target->of != target->from && is_label(code, target->from);
}

bool fay_code_read_labels(struct fay_code *code)
{
	struct fay_line_value target;

	if (!any_label(code))
		return true;
	for (size_t i = 0; i < code->step_count; i++) {
		if (!reads_labels(code, i, &target) ||
		    !read_distances(code, target.of, target.from, false))
			continue;
		code->steps[i].reads = target.of;
		if (!fay_code_add_table(code, target.of, target.from))
			return false;
	}
	for (size_t i = 0; i < code->table_count; i++)
		if (code->tables[i].table != code->tables[i].from)
			read_distances(code, code->tables[i].table, code->tables[i].from, true);
	/* what they lead to may be right in front of such a jump */
	for (size_t i = 0; i < code->step_count; i++)
		if (code->steps[i].reads &&
		    (!reads_labels(code, i, &target) || target.of != code->steps[i].reads))
			return fay_code_refuse(code, "has a jump at +%#lx that leads to itself",
					       fay_code_offset(code, code->steps[i].at));
	return true;
}

bool fay_code_resolve_indirect(struct fay_code *code)
{
	bool labels = any_label(code), ways_missed = *code->reason;
	struct fay_line_value target;
	size_t begin;

	/* where tables of pointers lead; then who reads which table; then all else */
	for (unsigned round = 0; round < 2; round++)
		for (size_t i = 0; i < code->step_count; i++) {
			if (code->steps[i].kind != FAY_STEP_INDIRECT ||
			    !fay_line_target(code, i, &target, &begin))
				continue;
			if (round == 0 && target.kind == FAY_LINE_POINTER && target.of)
				read_pointers(code, target.of);
			if (round == 1 && target.kind == FAY_LINE_TABLE && target.constant &&
			    has_entries(code, target.of, target.from))
				code->steps[i].reads = target.of;
		}
	for (size_t i = 0; i < code->step_count; i++) {
		if (code->steps[i].kind != FAY_STEP_INDIRECT)
			continue;
		if (!fay_line_target(code, i, &target, &begin))
			return fay_code_refuse(code, "has bytes that are not an instruction");
		if (judge(code, i, begin, &target, labels)) {
			code->steps[i].doubt = code->steps[i].exit && ways_missed;
			continue;
		}
		/* with something on the stack it does not leave the function */
		code->steps[i].exit = code->steps[i].doubt = code->steps[i].depth <= 0;
		if (!*code->reason)
			fay_code_refuse(code,
					"has an indirect jump at +%#lx, and where that leads is "
					"not known",
					fay_code_offset(code, code->steps[i].at));
	}
	return true;
}
