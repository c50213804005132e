/* SPDX-License-Identifier: MIT */
/*
 * The operands of the allow-list decoder: ModRM, SIB, displacements and immediates, read as the
 * row's form or shape (opcodes_forms.def) demands, each bit of REX or VEX counted that has an
 * effect. decode.c says what language this is.
 */
#include "decode_parts.h"

#define VECTOR 128 /* "width" of an operand that is a vector register */

/* Where an operand is found: opcodes_forms.def. */
enum { AT_NONE, AT_REG, AT_OPCODE, AT_VVVV, AT_RAX, AT_CL, AT_RSI, AT_RDI, AT_IZ, AT_IB, AT_IV };
enum { AT_COUNT = AT_IV + 1, AT_ONE, AT_REL8, AT_REL32, AT_MASK, AT_RM = 0x20, AT_VECTOR = 0x40 };
enum { AT_XRM = AT_VECTOR | AT_RM, AT_XREG = AT_VECTOR | AT_REG, AT_XVVVV = AT_VECTOR | AT_VVVV };
enum { BITS_SAME = 0, BITS_HALF = 1, BITS_8 = 8, BITS_16 = 16, BITS_32 = 32 };

static const struct form_row {
	uint8_t dst, src, src2, imm, bits;
} forms[] = {
#define FORM(name, dst, src, src2, bits)                                                           \
	[FORM_##name] = { AT_##dst, AT_##src, AT_##src2, AT_NONE, BITS_##bits },
#define SHAPE(name, dst, src, src2, imm)                                                           \
	[FORM_COUNT + VSHAPE_##name] = { AT_##dst, AT_##src, AT_##src2, AT_##imm, BITS_SAME },
#include "opcodes_forms.def"
};

/* A little-endian signed value of 1, 2, 4 or 8 bytes. */
static int64_t take_signed(struct reader *reader, unsigned size)
{
	unsigned unused = 64 - 8 * size;
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)fay_reader_take8(reader) << 8 * i;
	return (int64_t)(value << unused) >> unused; /* gcc and clang keep the sign */
}

static struct fay_operand operand_reg(struct reader *reader, unsigned reg, unsigned width)
{
	struct fay_operand o = {
		.kind = OPERAND_REG, .reg = (uint8_t)reg, .base = FAY_NO_REG, .index = FAY_NO_REG
	};

	if (width == VECTOR)
		o.kind = OPERAND_VEC;
	if (width != 8 || reg < 4 || reg > 7)
		return o;
	/* Without any REX these are ah, ch, dh, bh; with one, spl, bpl, sil, dil (Intel SDM volume
	 * 1, 3.4.1.1). */
	reader->needs_rex = true;
	if (!reader->rex) {
		o.kind = OPERAND_HIGH;
		o.reg = (uint8_t)(reg - 4);
	}
	return o;
}

static struct fay_operand operand_imm(int64_t value)
{
	return (struct fay_operand){
		.kind = OPERAND_IMM, .imm = value, .base = FAY_NO_REG, .index = FAY_NO_REG
	};
}

static struct fay_operand operand_memory(uint8_t base)
{
	return (struct fay_operand){
		.kind = OPERAND_MEM, .base = base, .index = FAY_NO_REG, .scale = 1
	};
}

/* A register's number: three bits, and `bit` of REX or VEX for the fourth. */
static uint8_t number(struct reader *reader, unsigned low, uint8_t bit)
{
	reader->rex_used |= bit;
	return (uint8_t)((low & 7) | (reader->rex & bit ? 8 : 0));
}

/* The r/m operand; the ModRM byte has been read. A rip-relative displacement is made absolute once
 * the length is known. */
static struct fay_operand read_rm(struct reader *reader, unsigned width)
{
	struct fay_operand memory = operand_memory(FAY_NO_REG);
	unsigned mod = reader->modrm >> 6, base = reader->modrm & 7;
	bool sib = base == 4;

	if (mod == 3)
		return operand_reg(reader, number(reader, base, REX_B), width);
	if (sib) {
		uint8_t byte = fay_reader_take8(reader), index = number(reader, byte >> 3, REX_X);

		base = byte & 7;
		if (index != FAY_RSP) {
			memory.index = index;
			memory.scale = (uint8_t)(1 << (byte >> 6));
		} else if (byte >> 6) {
			fail(reader, FAY_RULE_DEC_ENCODING, "a scale without an index");
		} else if (base != FAY_RSP && (mod != 0 || base != 5)) {
			fail(reader, FAY_RULE_DEC_ENCODING, "a redundant SIB byte");
		}
	}
	if (mod == 0 && base == 5)
		memory.rip = !sib;
	else
		memory.base = number(reader, base, REX_B);
	if (mod == 1)
		memory.disp = take_signed(reader, 1);
	else if (mod == 2 || base == 5)
		memory.disp = take_signed(reader, 4);
	return memory;
}

static void read_target(struct reader *reader, struct fay_insn *insn, unsigned size)
{
	uint64_t displacement = (uint64_t)take_signed(reader, size);

	insn->target = insn->address + reader->at + displacement;
}

/* The fourth register of a VEX blend; in legacy encoding it is xmm0. */
static int64_t read_mask(struct reader *reader)
{
	uint8_t mask = reader->vex ? fay_reader_take8(reader) : 0;

	if (mask & 15)
		fail(reader, FAY_RULE_DEC_ENCODING, "a register immediate with other bits set");
	return mask >> 4;
}

static void read_operand(struct reader *reader, struct fay_insn *insn, unsigned place,
			 unsigned width, struct fay_operand *o)
{
	if (place == AT_NONE)
		return;
	if (place == AT_XVVVV && !reader->vex) {
		*o = insn->dst;
		return;
	}
	reader->vvvv_used |= place == AT_VVVV || place == AT_XVVVV;
	if (place & AT_VECTOR)
		width = VECTOR;
	switch (place & ~(unsigned)AT_VECTOR) {
	case AT_RM: *o = read_rm(reader, width); return;
	case AT_REG:
		*o = operand_reg(reader, number(reader, reader->modrm >> 3, REX_R), width);
		return;
	case AT_OPCODE:
		*o = operand_reg(reader, number(reader, reader->opcode, REX_B), width);
		return;
	case AT_VVVV: *o = operand_reg(reader, reader->vvvv, width); return;
	case AT_RAX: *o = operand_reg(reader, FAY_RAX, width); return;
	case AT_CL: *o = operand_reg(reader, FAY_RCX, 8); return;
	case AT_RSI: *o = operand_memory(FAY_RSI); return;
	case AT_RDI: *o = operand_memory(FAY_RDI); return;
	case AT_IZ: *o = operand_imm(take_signed(reader, width >= 32 ? 4 : width / 8)); return;
	case AT_IB: *o = operand_imm(take_signed(reader, 1)); return;
	case AT_IV: *o = operand_imm(take_signed(reader, width / 8)); return;
	case AT_COUNT: *o = operand_imm(fay_reader_take8(reader)); return;
	case AT_ONE: *o = operand_imm(1); return;
	case AT_REL8: read_target(reader, insn, 1); return;
	case AT_REL32: read_target(reader, insn, 4); return;
	case AT_MASK: *o = operand_imm(read_mask(reader)); return;
	default: return;
	}
}

void fay_operands_read(struct reader *reader, struct fay_insn *insn)
{
	const struct fay_vector_row *vector = reader->vector;
	const struct form_row *form =
		&forms[vector ? FORM_COUNT + vector->shape : reader->row->form];
	unsigned bits = form->bits == BITS_SAME   ? insn->width
			: form->bits == BITS_HALF ? insn->width / 2
						  : form->bits;
	struct fay_operand imm = { .imm = 0 };

	insn->src_width = (uint8_t)bits;
	if (vector && vector->shape == VSHAPE_GG)
		bits = 8 * insn->access;
	/* The bytes of ModRM come first, an immediate last. */
	if ((form->dst | form->src) & AT_RM)
		reader->modrm = fay_reader_take8(reader);
	read_operand(reader, insn, form->dst, insn->width, &insn->dst);
	read_operand(reader, insn, form->src, bits, &insn->src);
	read_operand(reader, insn, form->src2, insn->width, &insn->src2);
	read_operand(reader, insn, form->imm, 8, &imm);
	insn->imm = (uint8_t)imm.imm;
	if (vector && vector->shape == VSHAPE_VMI && !reader->vex)
		insn->dst = insn->src;
}

/* What a form demands of its operands beyond their places, and the row. Of vector instructions the
 * row has judged memory, W and L. */
static void check_general(struct reader *reader, const struct fay_insn *insn)
{
	unsigned form = reader->row->form, mod = reader->row->mod;
	bool memory = insn->dst.kind == OPERAND_MEM || insn->src.kind == OPERAND_MEM;

	if (form == FORM_A_O && insn->src.reg == FAY_RAX)
		fail(reader, FAY_RULE_DEC_ENCODING,
		     "a no-operation that is not one of the canonical forms");
	if (form == FORM_SLOT && insn->src.kind != OPERAND_REG && !insn->src.rip)
		fail(reader, FAY_RULE_INS_FORBIDDEN,
		     "an indirect call that is not through a helper slot (call *slot(%rip))");
	if (form == FORM_RM_JUMP && insn->dst.rip)
		fail(reader, FAY_RULE_INS_UNSUPPORTED,
		     "a tail call through a slot (compile with -fno-optimize-sibling-calls)");
	if (form == FORM_FENCE && !memory && (reader->modrm & 7))
		fail(reader, FAY_RULE_DEC_ENCODING, "a redundant encoding of a fence");
	if (mod == MOD_MEM && !memory)
		fail(reader, FAY_RULE_INS_UNSUPPORTED, "this instruction without a memory operand");
	if ((mod == MOD_REG || mod == MOD_REGF) && memory)
		fail(reader, mod == MOD_REG ? FAY_RULE_INS_UNSUPPORTED : FAY_RULE_INS_FORBIDDEN,
		     "this instruction with a memory operand");
	if (reader->count[PREFIX_F0] && insn->dst.kind != OPERAND_MEM)
		fail(reader, FAY_RULE_DEC_PREFIX, "lock without a memory destination");
}

void fay_operands_check(struct reader *reader, const struct fay_insn *insn)
{
	if (!reader->vector)
		check_general(reader, insn);
	else if (insn->src.kind == OPERAND_HIGH)
		fail(reader, FAY_RULE_INS_UNSUPPORTED, "a high-byte register (ah, ch, dh, bh)");
	if (reader->vvvv && !reader->vvvv_used)
		fail(reader, FAY_RULE_DEC_ENCODING,
		     "VEX.vvvv names a register that the instruction does not have");
	if ((reader->rex & 15 & ~reader->rex_used) || (reader->rex == 0x40 && !reader->needs_rex))
		fail(reader, FAY_RULE_DEC_PREFIX, "a REX or VEX prefix bit without effect");
}
