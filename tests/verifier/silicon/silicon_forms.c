/* SPDX-License-Identifier: MIT */
/*
 * The forms of test_silicon: every opcode of every map, with every prefix, tried on the decoder.
 * Nothing here knows which instructions exist, so a row that is added to opcodes.def is tested
 * without further ado.
 */
#include "silicon.h"

#include <string.h>

/* map: 0 one byte, 1 0F, 2 F3 0F, 3 F3, 4 VEX. */
enum { MAPS = 5 };

static size_t put_vex(const struct form *form, uint64_t random, uint8_t *bytes)
{
	uint8_t vvvv = random >> 40 & 15, b = form->memory ? 1 : random & 1, x = random >> 1 & 1,
		r = random >> 2 & 1;

	if (!form->memory)
		x = 0;
	if (random & 16) /* where vvvv is not used it must be 1111 */
		vvvv = 0;
	bytes[0] = 0xc4;
	bytes[1] = (uint8_t)((!r) << 7 | (!x) << 6 | (!b) << 5 | form->vex_map);
	bytes[2] = (uint8_t)(form->rex_w << 7 | (~vvvv & 15) << 3 | form->vex_pp);
	return 3;
}

/* Random bytes of a form: the decoder says whether they are legal. */
static void make_bytes(const struct form *form, uint8_t bytes[15])
{
	uint64_t random = next_random(), immediate = random_value();
	uint8_t rex = (uint8_t)((random & 7) | (form->rex_w ? 8 : 0)),
		reg = form->any_digit ? random >> 24 & 7 : form->digit;
	size_t at = 0;

	if (form->memory)
		rex |= 1; /* base r14 */
	memset(bytes, 0, 15);
	if (form->map == 4) {
		at = put_vex(form, random, bytes);
	} else {
		if (form->lock)
			bytes[at++] = 0xf0;
		if (form->p66)
			bytes[at++] = 0x66;
		if (form->map >= 2)
			bytes[at++] = 0xf3;
		if (rex || random & 8)
			bytes[at++] = 0x40 | rex;
		if (form->map == 1 || form->map == 2)
			bytes[at++] = 0x0f;
		if (form->vex_map)
			bytes[at++] = 0x38;
	}
	bytes[at++] = form->opcode;
	if (!form->memory) {
		bytes[at++] = (uint8_t)(0xc0 | reg << 3 | (random >> 8 & 7));
	} else {
		bool index = random >> 12 & 1; /* r13 needs REX.X */

		bytes[at++] = (uint8_t)(0x40 | reg << 3 | (index ? 4 : 6));
		if (index)
			bytes[at++] = (uint8_t)((random >> 16 & 3) << 6 | 5 << 3 | 6);
		bytes[at++] = (uint8_t)(random >> 20 & 63);
	}
	for (unsigned i = 0; i < 8 && at < 15; i++)
		bytes[at++] = (uint8_t)(immediate >> 8 * i);
}

static bool testable_operand(const struct fay_operand *o)
{
	if (o->kind == OPERAND_REG)
		return o->reg != FAY_RSP;
	if (o->kind == OPERAND_MEM)
		return o->base == FAY_R14 && (o->index == FAY_NO_REG || o->index == FAY_R13) &&
		       !o->rip && o->disp >= 0 && o->disp < 64;
	return o->kind != OPERAND_VEC;
}

static bool testable(const struct fay_insn *insn)
{
	if (insn->op == OP_VECTOR || insn->op == OP_RDTSC ||
	    (fay_op_table[insn->op].attributes & ATTR_CONTROL))
		return false;
	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS)
		return true;
	return testable_operand(&insn->dst) && testable_operand(&insn->src) &&
	       testable_operand(&insn->src2);
}

bool silicon_instance(struct fay_arena *arena, const struct form *form, uint8_t bytes[15],
		      struct fay_insn *insn, unsigned attempts)
{
	for (unsigned attempt = 0; attempt < attempts; attempt++) {
		bool memory;

		make_bytes(form, bytes);
		if (fay_decode(arena, bytes, 15, 0x1000, insn).rule != FAY_RULE_NONE)
			continue;
		if (insn->op == OP_VECTOR || (fay_op_table[insn->op].attributes & ATTR_CONTROL))
			return false;
		memory = insn->dst.kind == OPERAND_MEM || insn->src.kind == OPERAND_MEM;
		/* The forms without ModRM decode either way; one is enough. */
		if (memory == (bool)form->memory && testable(insn))
			return true;
	}
	return false;
}

/* Whether all digits mean one operation. found[]: which digits mean any. */
static bool one_operation(struct fay_arena *arena, struct form *form, bool found[8])
{
	bool same = true;
	uint8_t bytes[15], op = OP_COUNT;
	struct fay_insn insn;

	for (form->digit = 0; form->digit < 8; form->digit++) {
		found[form->digit] =
			silicon_instance(arena, form, bytes, &insn, form->map == 4 ? 12 : 48);
		if (!found[form->digit])
			same = false;
		else if (op == OP_COUNT)
			op = insn.op;
		else
			same = same && insn.op == op;
	}
	return same;
}

static void forms_of(struct fay_arena **arena, struct form form, void (*each)(const struct form *))
{
	bool found[8];

	form.any_digit = false;
	form.any_digit = one_operation(*arena, &form, found);
	for (form.digit = 0; form.digit < (form.any_digit ? 1 : 8); form.digit++)
		if (form.any_digit || found[form.digit])
			each(&form);
}

/* Not opcodes of a one-byte map: prefixes, REX, VEX, the way to other maps. */
static bool is_prefix(unsigned opcode)
{
	static const uint8_t prefixes[] = { 0x0f, 0x26, 0x2e, 0x36, 0x3e, 0x62, 0x64, 0x65,
					    0x66, 0x67, 0xc4, 0xc5, 0xf0, 0xf2, 0xf3 };

	return (opcode & 0xf0) == 0x40 || memchr(prefixes, (int)opcode, sizeof(prefixes));
}

void silicon_each_form(struct fay_arena **arena, void (*each)(const struct form *))
{
	for (unsigned map = 0; map < 4; map++)
		for (unsigned opcode = 0; opcode < 256; opcode++)
			for (unsigned bits = 0;
			     bits < 16 && !((map == 0 || map == 3) && is_prefix(opcode)); bits++)
				forms_of(arena,
					 (struct form){ .map = (uint8_t)map,
							.opcode = (uint8_t)opcode,
							.rex_w = bits & 1,
							.p66 = bits >> 1 & 1,
							.lock = bits >> 2 & 1,
							.memory = bits >> 3 & 1 },
					 each);
	for (unsigned opcode = 0; opcode < 256; opcode++) /* 0F 38 */
		for (unsigned bits = 0; bits < 8; bits++)
			forms_of(arena,
				 (struct form){ .map = 1,
						.vex_map = 2,
						.opcode = (uint8_t)opcode,
						.rex_w = bits & 1,
						.p66 = bits >> 1 & 1,
						.memory = bits >> 2 & 1 },
				 each);
	for (unsigned map = 2; map < 4; map++) /* 0F has vectors only */
		for (unsigned opcode = 0; opcode < 256; opcode++)
			for (unsigned bits = 0; bits < 16; bits++)
				forms_of(arena,
					 (struct form){ .map = 4,
							.vex_map = (uint8_t)map,
							.opcode = (uint8_t)opcode,
							.rex_w = bits & 1,
							.vex_pp = bits >> 1 & 3,
							.memory = bits >> 3 & 1 },
					 each);
}
