/* SPDX-License-Identifier: MIT */
/*
 * A variable's location as a program (query/runtime/compute.h), where an operand cannot say it:
 * what is computed of registers and memory, and of what registers held when the call began
 * (DW_OP_entry_value).
 *
 * Each value on DWARF's stack has a type (DWARF 5, 2.5.1), mostly that of an address. Others are
 * kept as the program would have them in a wider register, so that one kind of arithmetic will do;
 * floating-point numbers have no program.
 */
#include "scopes_private.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define JUMPS_MAX 4u

struct type {
	uint8_t bytes;
	bool is_signed;
	bool is_number; /* of 8 bytes without a sign; an address has one in relations */
};
static const struct type generic = { .bytes = 8 };

struct jump {
	size_t target;  /* the operation's offset in the expression */
	uint32_t at;    /* the byte of the program that says how far */
	uint32_t depth; /* of the stack there */
};

struct assembler {
	const struct fay_debug_file *file;
	struct fay_debug_scopes *scopes;
	Dwarf_Attribute *attribute; /* of the expression; NULL: of the frame */
	uint64_t pc;
	struct fay_debug_program *program;
	struct type stack[FAY_COMPUTE_DEPTH];
	uint32_t depth, jump_count;
	struct jump jumps[JUMPS_MAX];
	bool nested, is_value; /* nested: within the frame's base */
};

static bool assemble(struct assembler *a, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
		     size_t count);

static bool put(struct assembler *a, uint64_t value, unsigned bytes)
{
	struct fay_debug_program *program = a->program;
	if (program->length + bytes > FAY_COMPUTE_BYTES)
		return false;
	memcpy(program->bytes + program->length, &value, bytes);
	program->length += bytes;
	return true;
}

static bool pushed(struct assembler *a, struct type type)
{
	if (a->depth == FAY_COMPUTE_DEPTH)
		return false;
	a->stack[a->depth++] = type;
	return true;
}

static unsigned bytes_for(int64_t value)
{
	return value == (int8_t)value    ? 1
	       : value == (int16_t)value ? 2
	       : value == (int32_t)value ? 4
					 : 8;
}

static bool combine(struct assembler *a, unsigned atom);

static bool push_number(struct assembler *a, int64_t value)
{
	unsigned bytes = bytes_for(value), level = (unsigned)__builtin_ctz(bytes);
	if (bytes <= 4)
		return put(a, FAY_COMPUTE_NUMBER1 + level, 1) && put(a, (uint64_t)value, bytes) &&
		       pushed(a, generic);
	/* in two halves, the lower of which has a sign */
	int64_t low = (int32_t)value, high = (int64_t)((uint64_t)value - (uint64_t)low) >> 32;
	return push_number(a, (int32_t)high) && push_number(a, 32) && combine(a, DW_OP_shl) &&
	       push_number(a, low) && combine(a, DW_OP_plus);
}

static bool push_word(struct assembler *a, unsigned number, int64_t offset)
{
	unsigned bytes = !offset ? 0 : bytes_for(offset) == 1 ? 1 : 4;
	unsigned group = bytes == 0   ? FAY_COMPUTE_REGISTER
			 : bytes == 1 ? FAY_COMPUTE_REGISTER1
				      : FAY_COMPUTE_REGISTER4;
	return bytes_for(offset) <= 4 && put(a, group | number, 1) &&
	       put(a, (uint64_t)offset, bytes) && pushed(a, generic);
}

static bool push_register(struct assembler *a, uint64_t number, int64_t offset)
{
	uint8_t own = fay_debug_register(number);
	return own != FAY_DEBUG_NO_REGISTER && push_word(a, own, offset);
}

/* The address in the object, from where the event happens on. */
static bool push_object(struct assembler *a, uint64_t address)
{
	return push_word(a, FAY_COMPUTE_PLACE, (int64_t)(address - a->pc));
}

/* --- frames --- */

static bool push_frame_address(struct assembler *a)
{
	bool pushed = false;
	for (unsigned i = 0; i < 2 && !pushed; i++) {
		uint32_t length = a->program->length, depth = a->depth;
		struct fay_debug_frame found;
		pushed = fay_debug_frame_address(a->file, a->pc, i, &found) &&
			 assemble(a, NULL, found.ops, found.count) && a->depth == depth + 1;
		free(found.frame);
		if (!pushed) {
			a->program->length = length;
			a->depth = depth;
		}
	}
	return pushed;
}

static bool push_frame_base(struct assembler *a)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	if (a->nested || !fay_debug_frame_base(a->scopes, a->pc, &attribute, &ops, &count))
		return false;
	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return push_register(a, ops[0].atom - DW_OP_reg0, 0);
	a->nested = true;
	bool good = assemble(a, &attribute, ops, count);
	a->nested = false;
	return good;
}

/* What a register held at the function's entry, if it is one of arguments'. */
static bool push_entry(struct assembler *a, const Dwarf_Op *op)
{
	static const uint8_t arguments[] = { 7, 6, 2, 1, 8, 9 };
	Dwarf_Die *function = fay_debug_subprogram(a->scopes);
	Dwarf_Op *ops;
	Dwarf_Addr entry;
	size_t count, number = 0;
	Dwarf_Attribute inner;
	if (!a->attribute || a->nested || !function ||
	    dwarf_getlocation_attr(a->attribute, op, &inner) ||
	    dwarf_getlocation(&inner, &ops, &count) || count != 1 || ops[0].atom < DW_OP_reg0 ||
	    ops[0].atom > DW_OP_reg31 || !fay_debug_entry_of(a->file, function, &entry))
		return false;
	uint8_t own = fay_debug_register(ops[0].atom - DW_OP_reg0);
	int64_t distance = (int64_t)(entry - a->pc);
	while (number < sizeof(arguments) && arguments[number] != own)
		number++;
	a->program->entries = true;
	return number < sizeof(arguments) && bytes_for(distance) <= 4 && push_frame_address(a) &&
	       put(a, FAY_COMPUTE_ENTRY | number, 1) && put(a, (uint64_t)distance, 4);
}

/* --- types --- */

/* Of an integer's. */
static bool type_of(struct assembler *a, const Dwarf_Op *op, struct type *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Die die;
	Dwarf_Word encoding;
	*type = generic;
	if ((op->atom == DW_OP_convert || op->atom == DW_OP_GNU_convert) && !op->number)
		return true;
	if (!a->attribute || dwarf_getlocation_die(a->attribute, op, &die))
		return false;
	int bytes = dwarf_bytesize(&die);
	if (!dwarf_attr(&die, DW_AT_encoding, &attribute) ||
	    dwarf_formudata(&attribute, &encoding) ||
	    (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
		return false;
	type->bytes = (uint8_t)bytes;
	type->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	type->is_number = bytes == 8 && !type->is_signed;
	return type->is_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char ||
	       encoding == DW_ATE_boolean || encoding == DW_ATE_address || encoding == DW_ATE_UTF;
}

/* The top is of that type now. */
static bool narrow(struct assembler *a, struct type type)
{
	unsigned level = (unsigned)__builtin_ctz(type.bytes);
	if (!a->depth)
		return false;
	a->stack[a->depth - 1] = type;
	return type.bytes == 8 ||
	       put(a, (type.is_signed ? FAY_COMPUTE_SIGNED1 : FAY_COMPUTE_UNSIGNED1) + level, 1);
}

/* --- operations --- */

static bool dereference(struct assembler *a, uint64_t bytes, struct type type)
{
	if (!a->depth || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
		return false;
	return put(a, FAY_COMPUTE_READ1 + (unsigned)__builtin_ctz((unsigned)bytes), 1) &&
	       (type.bytes == 8 || narrow(a, type));
}

/* By DWARF's operation; 0: none. Numbers without a sign are as good as signed ones while they are
 * kept in a wider register. */
static unsigned binary_of(unsigned atom, struct type type)
{
	switch (atom) {
	case DW_OP_plus: return FAY_COMPUTE_ADD;
	case DW_OP_minus: return FAY_COMPUTE_SUBTRACT;
	case DW_OP_mul: return FAY_COMPUTE_MULTIPLY;
	case DW_OP_and: return FAY_COMPUTE_AND;
	case DW_OP_or: return FAY_COMPUTE_OR;
	case DW_OP_xor: return FAY_COMPUTE_XOR;
	case DW_OP_shl: return FAY_COMPUTE_LEFT;
	/* its zeros come in where the narrow number ends */
	case DW_OP_shr: return type.bytes == 8 || !type.is_signed ? FAY_COMPUTE_RIGHT : 0;
	case DW_OP_shra: return type.bytes == 8 || type.is_signed ? FAY_COMPUTE_RIGHT_SIGNED : 0;
	case DW_OP_div: return type.is_number ? 0 : FAY_COMPUTE_DIVIDE;
	case DW_OP_eq: return FAY_COMPUTE_EQUAL;
	case DW_OP_ne: return FAY_COMPUTE_UNEQUAL;
	case DW_OP_lt:
	case DW_OP_gt: return type.is_number ? 0 : FAY_COMPUTE_LESS;
	case DW_OP_le:
	case DW_OP_ge: return type.is_number ? 0 : FAY_COMPUTE_LESS_EQUAL;
	default: return 0;
	}
}

static bool combine(struct assembler *a, unsigned atom)
{
	struct type type = a->depth < 2 ? generic : a->stack[a->depth - 2];
	unsigned operation = binary_of(atom, type);
	bool swap = atom == DW_OP_gt || atom == DW_OP_ge, relates = operation >= FAY_COMPUTE_EQUAL;
	if (a->depth < 2 || !operation || (swap && !put(a, FAY_COMPUTE_SWAP, 1)) ||
	    !put(a, operation, 1))
		return false;
	a->depth--;
	a->stack[a->depth - 1] = relates ? generic : type;
	return relates || type.bytes == 8 || narrow(a, type);
}

static bool change(struct assembler *a, unsigned operation)
{
	return a->depth && put(a, operation, 1) && narrow(a, a->stack[a->depth - 1]);
}

static bool arrange(struct assembler *a, unsigned atom)
{
	switch (atom) {
	case DW_OP_dup:
		return a->depth && put(a, FAY_COMPUTE_DUPLICATE, 1) &&
		       pushed(a, a->stack[a->depth - 1]);
	case DW_OP_drop: return a->depth && put(a, FAY_COMPUTE_DROP, 1) && a->depth--;
	case DW_OP_over:
		return a->depth > 1 && put(a, FAY_COMPUTE_OVER, 1) &&
		       pushed(a, a->stack[a->depth - 2]);
	default:
		if (a->depth < 2 || !put(a, FAY_COMPUTE_SWAP, 1))
			return false;
		struct type type = a->stack[a->depth - 1];
		a->stack[a->depth - 1] = a->stack[a->depth - 2];
		a->stack[a->depth - 2] = type;
		return true;
	}
}

/* Forward only. What lies on the stack has the same types on both ways: those of addresses. */
static bool jump(struct assembler *a, const Dwarf_Op *op)
{
	bool sometimes = op->atom == DW_OP_bra;
	int64_t distance = (int16_t)op->number;
	for (uint32_t i = 0; i < a->depth; i++)
		if (a->stack[i].bytes != 8)
			return false;
	if (distance < 0 || a->nested || a->jump_count == JUMPS_MAX || (sometimes && !a->depth))
		return false;
	a->depth -= sometimes;
	a->jumps[a->jump_count++] = (struct jump){ .target = op->offset + 3 + (uint64_t)distance,
						   .at = a->program->length + 1,
						   .depth = a->depth };
	return put(a, sometimes ? FAY_COMPUTE_SKIP_IF : FAY_COMPUTE_SKIP, 1) && put(a, 0, 1);
}

static void land(struct assembler *a, size_t offset)
{
	for (uint32_t i = 0; i < a->jump_count; i++) {
		struct jump *jump = &a->jumps[i];
		if (jump->target != offset)
			continue;
		a->program->bytes[jump->at] = (uint8_t)(a->program->length - jump->at - 1);
		a->depth = jump->depth;
		*jump = a->jumps[--a->jump_count];
		i--;
	}
}

static bool step_typed(struct assembler *a, const Dwarf_Op *op)
{
	struct type type;
	if (!type_of(a, op, &type))
		return false;
	switch (op->atom) {
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type: return push_register(a, op->number, 0) && narrow(a, type);
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type: return dereference(a, op->number, type);
	default: return narrow(a, type);
	}
}

static bool step(struct assembler *a, const Dwarf_Op *op)
{
	unsigned atom = op->atom;
	int64_t number;
	if (fay_debug_number_of(op, &number))
		return push_number(a, number);
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(a, atom - DW_OP_breg0, (int64_t)op->number);
	switch (atom) {
	case DW_OP_bregx: return push_register(a, op->number, (int64_t)op->number2);
	case DW_OP_addr: return push_object(a, op->number);
	case DW_OP_call_frame_cfa: return a->attribute && push_frame_address(a);
	case DW_OP_fbreg:
	case DW_OP_plus_uconst:
		return (atom == DW_OP_plus_uconst || push_frame_base(a)) &&
		       push_number(a, (int64_t)op->number) && combine(a, DW_OP_plus);
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value: return push_entry(a, op);
	case DW_OP_deref: return dereference(a, 8, generic);
	case DW_OP_deref_size: return dereference(a, op->number, generic);
	case DW_OP_neg: return change(a, FAY_COMPUTE_NEGATE);
	case DW_OP_not: return change(a, FAY_COMPUTE_NOT);
	case DW_OP_abs: return change(a, FAY_COMPUTE_ABSOLUTE);
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_swap: return arrange(a, atom);
	case DW_OP_bra:
	case DW_OP_skip: return jump(a, op);
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret: return step_typed(a, op);
	case DW_OP_nop: return true;
	case DW_OP_stack_value: return a->attribute && !a->nested && (a->is_value = true);
	default: return combine(a, atom);
	}
}

/* The mask that the next operation puts on an address, as an operation of one byte; 0: none. */
static unsigned mask_of(const struct assembler *a, const Dwarf_Op *ops, size_t left)
{
	bool number = ops[0].atom >= DW_OP_const1u && ops[0].atom <= DW_OP_consts;
	if (!number || left < 2 || ops[1].atom != DW_OP_and || !a->depth ||
	    a->stack[a->depth - 1].bytes != 8 || a->jump_count)
		return 0;
	return ops[0].number == UINT8_MAX    ? FAY_COMPUTE_UNSIGNED1
	       : ops[0].number == UINT16_MAX ? FAY_COMPUTE_UNSIGNED2
	       : ops[0].number == UINT32_MAX ? FAY_COMPUTE_UNSIGNED4
					     : 0;
}

static bool assemble(struct assembler *a, Dwarf_Attribute *attribute, const Dwarf_Op *ops,
		     size_t count)
{
	Dwarf_Attribute *outer = a->attribute;
	bool good = true;
	a->attribute = attribute;
	for (size_t i = 0; i < count && good; i++) {
		if (!a->nested && attribute)
			land(a, ops[i].offset);
		unsigned mask = mask_of(a, &ops[i], count - i);
		good = !a->is_value && (mask ? put(a, mask, 1) : step(a, &ops[i]));
		i += mask != 0;
	}
	a->attribute = outer;
	return good && a->depth > 0;
}

static bool assemble_constant(struct assembler *a, Dwarf_Attribute *attribute)
{
	Dwarf_Sword number;
	return !dwarf_formsdata(attribute, &number) && push_number(a, number);
}

/* The bytes as the program has them. */
static bool assemble_block(struct assembler *a, Dwarf_Attribute *attribute, const Dwarf_Op *op)
{
	Dwarf_Block block;
	int64_t value = 0;
	if (dwarf_getlocation_implicit_value(attribute, op, &block) || !block.length ||
	    block.length > sizeof(value))
		return false;
	memcpy(&value, block.data, block.length);
	return push_number(a, value);
}

bool fay_debug_compute(const struct fay_debug_file *file, struct fay_debug_scopes *scopes,
		       Dwarf_Die *variable, uint64_t pc, bool address,
		       struct fay_debug_program *program)
{
	struct assembler a = { .file = file, .scopes = scopes, .pc = pc, .program = program };
	unsigned bytes = address ? 8 : fay_debug_bytes_of(variable);
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	*program = (struct fay_debug_program){ 0 };
	if (!bytes)
		return false;
	if (!dwarf_attr_integrate(variable, DW_AT_location, &attribute))
		return !address && dwarf_attr_integrate(variable, DW_AT_const_value, &attribute) &&
		       assemble_constant(&a, &attribute);
	if (!fay_debug_find_location(&attribute, pc, &ops, &count))
		return false;
	if (count == 1 && ops[0].atom == DW_OP_implicit_value)
		return !address && assemble_block(&a, &attribute, ops);
	if (count == 1 && ops[0].atom == DW_OP_regx)
		return !address && push_register(&a, ops[0].number, 0);
	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return !address && push_register(&a, ops[0].atom - DW_OP_reg0, 0);
	return assemble(&a, &attribute, ops, count) && !a.jump_count &&
	       (a.is_value ? !address : address || dereference(&a, bytes, generic));
}
