/* SPDX-License-Identifier: MIT */
/*
 * A variable's location (DWARF 5, 2.5 and 2.6) as an operand of a marker's note.
 *
 * The expression is computed with what is known before the program runs: numbers, registers, the
 * place of the object in memory, and their sums. What may be read of memory is one word, as the
 * last step. Most locations are so; all others mean here that the variable has no value.
 */
#include "scopes_private.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_REGISTER FAY_DEBUG_NO_REGISTER
#define STACK_MAX 16u
#define RANGES_MAX 4096u /* of one variable */

/* value + base + index + where the object lies, if `object`; `bytes`: that many bytes there. */
struct term {
	int64_t value;
	uint8_t base, index, bytes;
	bool object;
};

enum result { NOWHERE, IN_MEMORY, IN_REGISTER, IS_VALUE };

struct machine {
	const struct fay_debug_file *file;
	struct fay_debug_scopes *scopes;
	uint64_t pc;
	struct term stack[STACK_MAX];
	uint32_t depth;
	enum result result;
	bool nested; /* within the frame's base */
};

uint8_t fay_debug_register(uint64_t number)
{
	static const uint8_t numbers[] = { 0, 2, 1, 3, 6, 7, 5, 4 };
	return number < 8 ? numbers[number] : number < 16 ? (uint8_t)number : NO_REGISTER;
}

static bool push(struct machine *machine, struct term term)
{
	if (machine->depth == STACK_MAX)
		return false;
	machine->stack[machine->depth++] = term;
	return true;
}

static bool push_number(struct machine *machine, int64_t value)
{
	return push(machine,
		    (struct term){ .value = value, .base = NO_REGISTER, .index = NO_REGISTER });
}

static bool push_register(struct machine *machine, uint64_t number, int64_t offset)
{
	struct term term = { .value = offset,
			     .base = fay_debug_register(number),
			     .index = NO_REGISTER };
	return term.base != NO_REGISTER && push(machine, term);
}

static bool is_number(const struct term *term)
{
	return term->base == NO_REGISTER && term->index == NO_REGISTER && !term->object &&
	       !term->bytes;
}

/* *a = *a + *b */
static bool add(struct term *a, const struct term *b)
{
	uint8_t registers[4], count = 0;
	if (a->bytes || b->bytes || (a->object && b->object))
		return false;
	for (unsigned i = 0; i < 4; i++) {
		const struct term *of = i < 2 ? a : b;
		uint8_t number = i % 2 ? of->index : of->base;
		if (number != NO_REGISTER)
			registers[count++] = number;
	}
	/* the stack pointer is no index */
	if (count > 2 || (count == 2 && registers[1] == 4 && registers[0] == 4))
		return false;
	bool swap = count == 2 && registers[1] == 4;
	a->base = count ? registers[swap] : NO_REGISTER;
	a->index = count == 2 ? registers[!swap] : NO_REGISTER;
	a->object |= b->object;
	a->value = (int64_t)((uint64_t)a->value + (uint64_t)b->value);
	return true;
}

static bool run(struct machine *machine, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
		size_t count);

static bool push_frame_address(struct machine *machine)
{
	bool pushed = false;
	for (unsigned i = 0; i < 2 && !pushed; i++) {
		struct fay_debug_frame found;
		uint32_t depth = machine->depth;
		pushed = fay_debug_frame_address(machine->file, machine->pc, i, &found) &&
			 run(machine, NULL, found.ops, found.count) && machine->depth == depth + 1;
		machine->depth = pushed ? depth + 1 : depth;
		free(found.frame);
	}
	return pushed;
}

static bool push_frame_base(struct machine *machine)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	uint32_t depth = machine->depth;
	if (machine->nested ||
	    !fay_debug_frame_base(machine->scopes, machine->pc, &attribute, &ops, &count))
		return false;
	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return push_register(machine, ops[0].atom - DW_OP_reg0, 0);
	machine->nested = true;
	bool good = run(machine, &attribute, ops, count) && machine->depth == depth + 1;
	machine->nested = false;
	return good;
}

/* Reads a word where the topmost term is. */
static bool dereference(struct machine *machine, uint64_t bytes)
{
	struct term *top = machine->depth ? &machine->stack[machine->depth - 1] : NULL;
	if (!top || top->bytes || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
		return false;
	top->bytes = (uint8_t)bytes;
	return true;
}

/* Two terms become one. A mask that compilers put on a register keeps what its type has. */
static bool combine(struct machine *machine, unsigned atom)
{
	if (machine->depth < 2)
		return false;
	struct term *b = &machine->stack[--machine->depth];
	struct term *a = &machine->stack[machine->depth - 1];
	switch (atom) {
	case DW_OP_plus: return add(a, b);
	case DW_OP_minus: b->value = -b->value; return is_number(b) && add(a, b);
	case DW_OP_and:
		if (!is_number(b))
			return false;
		if (is_number(a))
			a->value &= b->value;
		return is_number(a) || b->value == 0xff || b->value == 0xffff ||
		       b->value == 0xffffffff || b->value == -1;
	case DW_OP_mul:
		a->value = (int64_t)((uint64_t)a->value * (uint64_t)b->value);
		return is_number(a) && is_number(b);
	default: return false;
	}
}

static bool step(struct machine *machine, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
	unsigned atom = op->atom;
	struct term term = { .base = NO_REGISTER, .index = NO_REGISTER };
	int64_t number;
	if (fay_debug_number_of(op, &number))
		return push_number(machine, number);
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(machine, atom - DW_OP_breg0, (int64_t)op->number);
	switch (atom) {
	case DW_OP_bregx: return push_register(machine, op->number, (int64_t)op->number2);
	case DW_OP_regval_type: return push_register(machine, op->number, 0);
	case DW_OP_GNU_regval_type: return push_register(machine, op->number, 0);
	case DW_OP_addr:
		term.value = (int64_t)(op->number + machine->file->debug_bias -
				       machine->file->main_bias);
		term.object = true;
		return push(machine, term);
	case DW_OP_call_frame_cfa: return attribute && push_frame_address(machine);
	case DW_OP_fbreg:
		return push_frame_base(machine) && push_number(machine, (int64_t)op->number) &&
		       combine(machine, DW_OP_plus);
	case DW_OP_plus_uconst:
		return push_number(machine, (int64_t)op->number) && combine(machine, DW_OP_plus);
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_and:
	case DW_OP_mul: return combine(machine, atom);
	case DW_OP_deref: return dereference(machine, 8);
	case DW_OP_deref_size: return dereference(machine, op->number);
	case DW_OP_nop:
	case DW_OP_convert:
	case DW_OP_GNU_convert: return true;
	case DW_OP_stack_value: machine->result = IS_VALUE; return true;
	default: return false;
	}
}

static bool run(struct machine *machine, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
		size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (machine->result == IS_VALUE || !step(machine, attribute, &ops[i]))
			return false;
	return machine->depth > 0;
}

/* The bytes of a number as the program has them. */
static bool push_block(struct machine *machine, const Dwarf_Block *block)
{
	uint64_t value = 0;
	if (!block->length || block->length > sizeof(value))
		return false;
	memcpy(&value, block->data, block->length);
	machine->result = IS_VALUE;
	return push_number(machine, (int64_t)value);
}

/*
 * The expression that holds at the address. gcc has several views of one address, which no
 * instruction lies between: what is bound in one of them alone, as parameters of a copy that begins
 * in the middle of others' code, has a range without bytes there.
 */
bool fay_debug_find_location(Dwarf_Attribute *attribute, uint64_t pc, Dwarf_Op **ops, size_t *count)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	if (dwarf_getlocation_addr(attribute, pc, ops, count, 1) == 1)
		return *count > 0;
	for (unsigned i = 0; i < RANGES_MAX; i++) {
		at = dwarf_getlocations(attribute, at, &base, &start, &end, ops, count);
		if (at <= 0)
			break;
		if (start == pc && end == start)
			return *count > 0;
	}
	return false;
}

static bool run_location(struct machine *machine, Dwarf_Attribute *attribute)
{
	Dwarf_Op *ops;
	Dwarf_Block block;
	size_t count;
	if (!fay_debug_find_location(attribute, machine->pc, &ops, &count))
		return false;
	machine->result = IN_MEMORY;
	if (count == 1 && ops[0].atom == DW_OP_implicit_value)
		return !dwarf_getlocation_implicit_value(attribute, ops, &block) &&
		       push_block(machine, &block);
	bool is_register = ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31;
	if (count == 1 && (is_register || ops[0].atom == DW_OP_regx)) {
		machine->result = IN_REGISTER;
		return push_register(
			machine, is_register ? (uint64_t)ops[0].atom - DW_OP_reg0 : ops[0].number,
			0);
	}
	return run(machine, attribute, ops, count);
}

static bool run_constant(struct machine *machine, Dwarf_Attribute *attribute)
{
	Dwarf_Sword number;
	Dwarf_Block block;
	if (!dwarf_formblock(attribute, &block))
		return push_block(machine, &block);
	machine->result = IS_VALUE;
	return !dwarf_formsdata(attribute, &number) && push_number(machine, number);
}

/* --- text --- */

static const char *const names[][4] = {
	{ "al", "ax", "eax", "rax" },      { "cl", "cx", "ecx", "rcx" },
	{ "dl", "dx", "edx", "rdx" },      { "bl", "bx", "ebx", "rbx" },
	{ "spl", "sp", "esp", "rsp" },     { "bpl", "bp", "ebp", "rbp" },
	{ "sil", "si", "esi", "rsi" },     { "dil", "di", "edi", "rdi" },
	{ "r8b", "r8w", "r8d", "r8" },     { "r9b", "r9w", "r9d", "r9" },
	{ "r10b", "r10w", "r10d", "r10" }, { "r11b", "r11w", "r11d", "r11" },
	{ "r12b", "r12w", "r12d", "r12" }, { "r13b", "r13w", "r13d", "r13" },
	{ "r14b", "r14w", "r14d", "r14" }, { "r15b", "r15w", "r15d", "r15" },
};

/* "-16+.(%rbx,%rcx)"; `how` stands before it. */
static void write_term(const struct term *term, unsigned bytes, const char *how, char *text,
		       size_t size)
{
	char registers[32] = "";
	if (term->index != NO_REGISTER)
		snprintf(registers, sizeof(registers), "(%%%s,%%%s)", names[term->base][3],
			 names[term->index][3]);
	else if (term->base != NO_REGISTER)
		snprintf(registers, sizeof(registers), "(%%%s)", names[term->base][3]);
	snprintf(text, size, "%u@%s%" PRId64 "%s%s", bytes, how, term->value,
		 term->object ? "+." : "", registers);
}

unsigned fay_debug_bytes_of(Dwarf_Die *variable)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;
	if (!dwarf_attr_integrate(variable, DW_AT_type, &attribute) ||
	    !dwarf_formref_die(&attribute, &type) || dwarf_peel_type(&type, &type))
		return 0;
	int tag = dwarf_tag(&type), bytes = dwarf_bytesize(&type);
	if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	    tag == DW_TAG_rvalue_reference_type)
		return 8;
	if (tag != DW_TAG_base_type && tag != DW_TAG_enumeration_type)
		return 0;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 ? (unsigned)bytes : 0;
}

bool fay_debug_locate(const struct fay_debug_file *file, struct fay_debug_scopes *scopes,
		      Dwarf_Die *variable, uint64_t pc, bool address, char *text, size_t size)
{
	struct machine machine = { .file = file, .scopes = scopes, .pc = pc };
	Dwarf_Attribute attribute;
	unsigned bytes = address ? 8 : fay_debug_bytes_of(variable), level = 0;
	if (!bytes || !(dwarf_attr_integrate(variable, DW_AT_location, &attribute)
				? run_location(&machine, &attribute)
				: dwarf_attr_integrate(variable, DW_AT_const_value, &attribute) &&
					  run_constant(&machine, &attribute)))
		return false;
	const struct term *term = &machine.stack[machine.depth - 1];
	while (1u << level < bytes)
		level++;
	if (machine.result == IN_REGISTER || (!address && machine.result == IS_VALUE)) {
		if (address)
			return false;
		if (machine.result == IN_REGISTER)
			snprintf(text, size, "%u@%%%s", bytes, names[term->base][level]);
		else if (term->bytes)
			write_term(term, term->bytes, "", text, size);
		else
			write_term(term, 8,
				   is_number(term) || term->base == NO_REGISTER ? "$" : "&", text,
				   size);
		return true;
	}
	if (machine.result == IS_VALUE) /* of what has no address */
		return false;
	if (address)
		write_term(term, 8,
			   term->bytes                 ? ""
			   : term->base == NO_REGISTER ? "$"
						       : "&",
			   text, size);
	else if (term->bytes) /* behind an address that would have to be read first */
		return false;
	else
		write_term(term, bytes, "", text, size);
	return true;
}
