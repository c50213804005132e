/* SPDX-License-Identifier: MIT */
/*
 * The operands of the allow-list decoder: ModRM, SIB, displacements and immediates, read as the
 * form of the opcode's row demands, each REX bit counted that has an effect. decode.c says what
 * language this is.
 */
#include "decode_parts.h"

static struct fay_operand operand_reg(struct reader *reader, unsigned reg, unsigned width)
{
	if (width == 8 && reg >= 4 && reg <= 7) {
		/* Without any REX these are ah, ch, dh, bh; with one, spl, bpl, sil, dil (Intel SDM
		 * volume 1, 3.4.1.1). */
		if (!reader->has_rex)
			return (struct fay_operand){ .kind = OPERAND_HIGH,
						     .reg = (uint8_t)(reg - 4),
						     .base = FAY_NO_REG,
						     .index = FAY_NO_REG };
		reader->needs_rex = true;
	}
	return (struct fay_operand){
		.kind = OPERAND_REG, .reg = (uint8_t)reg, .base = FAY_NO_REG, .index = FAY_NO_REG
	};
}

static struct fay_operand operand_imm(int64_t value)
{
	return (struct fay_operand){
		.kind = OPERAND_IMM, .imm = value, .base = FAY_NO_REG, .index = FAY_NO_REG
	};
}

static struct fay_operand operand_string(unsigned base)
{
	return (struct fay_operand){
		.kind = OPERAND_MEM, .base = (uint8_t)base, .index = FAY_NO_REG, .scale = 1
	};
}

static void read_sib(struct reader *reader, unsigned mod, struct fay_operand *memory)
{
	uint8_t sib = fay_reader_take8(reader);
	unsigned index = (sib >> 3 & 7) | (reader->rex & REX_X ? 8 : 0), base = sib & 7;

	reader->rex_used |= reader->rex & REX_X;
	if (index != FAY_RSP) {
		memory->index = (uint8_t)index;
		memory->scale = (uint8_t)(1 << (sib >> 6));
	} else if (sib >> 6) {
		fail(reader, FAY_RULE_DEC_ENCODING, "a scale without an index");
	}
	if (mod == 0 && base == 5) {
		memory->disp = fay_reader_take_signed(reader, 4);
		return;
	}
	if (index == FAY_RSP && base != FAY_RSP)
		fail(reader, FAY_RULE_DEC_ENCODING, "a redundant SIB byte");
	reader->rex_used |= reader->rex & REX_B;
	memory->base = (uint8_t)(base | (reader->rex & REX_B ? 8 : 0));
}

/* The r/m operand. A rip-relative displacement is made absolute once the length is known. */
static struct fay_operand read_rm(struct reader *reader, unsigned width)
{
	struct fay_operand memory = {
		.kind = OPERAND_MEM, .base = FAY_NO_REG, .index = FAY_NO_REG, .scale = 1
	};
	unsigned mod, rm;

	reader->modrm = fay_reader_take8(reader);
	mod = reader->modrm >> 6;
	rm = reader->modrm & 7;
	if (mod == 3) {
		reader->rex_used |= reader->rex & REX_B;
		return operand_reg(reader, rm | (reader->rex & REX_B ? 8 : 0), width);
	}
	if (rm == 4) {
		read_sib(reader, mod, &memory);
	} else if (mod == 0 && rm == 5) {
		memory.rip = true;
		memory.disp = fay_reader_take_signed(reader, 4);
	} else {
		reader->rex_used |= reader->rex & REX_B;
		memory.base = (uint8_t)(rm | (reader->rex & REX_B ? 8 : 0));
	}
	if (mod == 1)
		memory.disp = fay_reader_take_signed(reader, 1);
	else if (mod == 2)
		memory.disp = fay_reader_take_signed(reader, 4);
	return memory;
}

/* The reg field as a register; the ModRM byte has been read. */
static struct fay_operand reg_field(struct reader *reader, unsigned width)
{
	reader->rex_used |= reader->rex & REX_R;
	return operand_reg(reader, (reader->modrm >> 3 & 7) | (reader->rex & REX_R ? 8 : 0), width);
}

static struct fay_operand opcode_reg(struct reader *reader, unsigned width)
{
	reader->rex_used |= reader->rex & REX_B;
	return operand_reg(reader, (reader->opcode & 7) | (reader->rex & REX_B ? 8 : 0), width);
}

static int64_t take_iz(struct reader *reader, unsigned width)
{
	return fay_reader_take_signed(reader, width >= 32 ? 4 : width / 8);
}

/* Counts and bit numbers are unsigned; everything else with an 8-bit immediate is sign-extended. */
static int64_t take_ib(struct reader *reader, enum fay_op op)
{
	bool count = (op >= OP_SHL && op <= OP_ROR) || (op >= OP_BT && op <= OP_BTC);
	return count ? fay_reader_take8(reader) : fay_reader_take_signed(reader, 1);
}

static void read_branch(struct reader *reader, struct fay_insn *insn, unsigned size)
{
	int64_t displacement = fay_reader_take_signed(reader, size);

	insn->target = insn->address + reader->at + (uint64_t)displacement;
}

/* Where an operand of a form is found. */
enum place {
	PLACE_NONE,
	/* ModRM's r/m and reg, the opcode's low bits, VEX.vvvv */
	PLACE_RM,
	PLACE_REG,
	PLACE_OPCODE,
	PLACE_VVVV,
	PLACE_RAX,
	PLACE_CL,
	PLACE_RSI,
	PLACE_RDI, /* the last two: memory there */
	PLACE_IZ,
	PLACE_IB,
	PLACE_IV,
	PLACE_COUNT,
	PLACE_ONE,
};

/* Branches have a target instead. No form has two immediates or two r/m. */
static const struct places {
	uint8_t dst, src, src2;
} places[] = {
	[FORM_RM_R] = { PLACE_RM, PLACE_REG, 0 },
	[FORM_R_RM] = { PLACE_REG, PLACE_RM, 0 },
	[FORM_R_RM8] = { PLACE_REG, PLACE_RM, 0 },
	[FORM_R_RM16] = { PLACE_REG, PLACE_RM, 0 },
	[FORM_R_RM32] = { PLACE_REG, PLACE_RM, 0 },
	[FORM_RM_IZ] = { PLACE_RM, PLACE_IZ, 0 },
	[FORM_RM_IB] = { PLACE_RM, PLACE_IB, 0 },
	[FORM_A_IZ] = { PLACE_RAX, PLACE_IZ, 0 },
	[FORM_RM] = { PLACE_RM, 0, 0 },
	[FORM_RM_SRC] = { 0, PLACE_RM, 0 },
	[FORM_RM_1] = { PLACE_RM, PLACE_ONE, 0 },
	[FORM_RM_CL] = { PLACE_RM, PLACE_CL, 0 },
	[FORM_RM_R_IB] = { PLACE_RM, PLACE_REG, PLACE_COUNT },
	[FORM_RM_R_CL] = { PLACE_RM, PLACE_REG, PLACE_CL },
	[FORM_R_RM_IZ] = { PLACE_REG, PLACE_RM, PLACE_IZ },
	[FORM_R_RM_IB] = { PLACE_REG, PLACE_RM, PLACE_IB },
	[FORM_O] = { PLACE_OPCODE, 0, 0 },
	[FORM_O_SRC] = { 0, PLACE_OPCODE, 0 },
	[FORM_O_IV] = { PLACE_OPCODE, PLACE_IV, 0 },
	[FORM_A_O] = { PLACE_RAX, PLACE_OPCODE, 0 },
	[FORM_IB] = { 0, PLACE_IB, 0 },
	[FORM_IZ] = { 0, PLACE_IZ, 0 },
	[FORM_EXTEND_A] = { PLACE_RAX, PLACE_RAX, 0 },
	[FORM_SLOT] = { 0, PLACE_RM, 0 },
	[FORM_RM_JUMP] = { PLACE_RM, 0, 0 },
	[FORM_MOVS] = { PLACE_RDI, PLACE_RSI, 0 },
	[FORM_STOS] = { PLACE_RDI, PLACE_RAX, 0 },
	[FORM_FENCE] = { 0, PLACE_RM, 0 },
	[FORM_VEX_R_V_RM] = { PLACE_REG, PLACE_RM, PLACE_VVVV },
	[FORM_VEX_V_RM] = { PLACE_VVVV, PLACE_RM, 0 },
	[FORM_VEX_R_RM_IB] = { PLACE_REG, PLACE_RM, PLACE_COUNT },
};

static void read_operand(struct reader *reader, const struct fay_insn *insn, enum place place,
			 unsigned width, struct fay_operand *o)
{
	switch (place) {
	case PLACE_NONE:
	case PLACE_RM: return; /* r/m has been read */
	case PLACE_REG: *o = reg_field(reader, width); return;
	case PLACE_OPCODE: *o = opcode_reg(reader, width); return;
	case PLACE_VVVV: *o = operand_reg(reader, reader->vvvv, width); return;
	case PLACE_RAX: *o = operand_reg(reader, FAY_RAX, width); return;
	case PLACE_CL: *o = operand_reg(reader, FAY_RCX, 8); return;
	case PLACE_RSI: *o = operand_string(FAY_RSI); return;
	case PLACE_RDI: *o = operand_string(FAY_RDI); return;
	case PLACE_IZ: *o = operand_imm(take_iz(reader, width)); return;
	case PLACE_IB: *o = operand_imm(take_ib(reader, insn->op)); return;
	case PLACE_IV: *o = operand_imm(fay_reader_take_signed(reader, width / 8)); return;
	case PLACE_COUNT: *o = operand_imm(fay_reader_take8(reader)); return;
	case PLACE_ONE: *o = operand_imm(1); return;
	}
}

/* What a form demands of its operands beyond their places. */
static void check_form(struct reader *reader, struct fay_insn *insn)
{
	switch ((enum form)reader->row->form) {
	case FORM_R_RM:
		if (insn->op == OP_IMUL)
			insn->src2 = insn->dst;
		break;
	case FORM_A_O:
		if (insn->src.reg == FAY_RAX)
			fail(reader, FAY_RULE_DEC_ENCODING,
			     "a no-operation that is not one of the canonical forms");
		break;
	case FORM_SLOT:
		if (insn->src.kind == OPERAND_REG)
			insn->op = OP_CALL_REG;
		else if (!insn->src.rip)
			fail(reader, FAY_RULE_INS_FORBIDDEN,
			     "an indirect call that is not through a helper slot (call "
			     "*slot(%rip))");
		break;
	case FORM_RM_JUMP:
		if (insn->dst.rip)
			fail(reader, FAY_RULE_INS_UNSUPPORTED,
			     "a tail call through a slot (compile with "
			     "-fno-optimize-sibling-calls)");
		break;
	case FORM_FENCE:
		if (insn->src.kind == OPERAND_REG && (reader->modrm & 7))
			fail(reader, FAY_RULE_DEC_ENCODING, "a redundant encoding of a fence");
		break;
	case FORM_VEX_R_RM_IB:
		if (reader->vvvv)
			fail(reader, FAY_RULE_DEC_ENCODING,
			     "a register in VEX.vvvv that is not used");
		break;
	default: break;
	}
}

static unsigned source_width(enum form form, unsigned width)
{
	switch (form) {
	case FORM_R_RM8: return 8;
	case FORM_R_RM16: return 16;
	case FORM_R_RM32: return 32;
	case FORM_EXTEND_A: return width / 2;
	default: return width;
	}
}

void fay_operands_read(struct reader *reader, struct fay_insn *insn)
{
	enum form form = (enum form)reader->row->form;
	const struct places *p = &places[form];

	if (form == FORM_J8 || form == FORM_J32 || form == FORM_CALL32) {
		read_branch(reader, insn, form == FORM_J8 ? 1 : 4);
		return;
	}
	insn->src_width = (uint8_t)source_width(form, insn->width);
	/* The bytes of ModRM come first, an immediate last. */
	if (p->dst == PLACE_RM)
		insn->dst = read_rm(reader, insn->width);
	if (p->src == PLACE_RM)
		insn->src = read_rm(reader, insn->src_width);
	read_operand(reader, insn, (enum place)p->dst, insn->width, &insn->dst);
	read_operand(reader, insn, (enum place)p->src, insn->src_width, &insn->src);
	read_operand(reader, insn, (enum place)p->src2, insn->width, &insn->src2);
	check_form(reader, insn);
}

void fay_operands_check(struct reader *reader, const struct fay_insn *insn)
{
	const struct row *row = reader->row;
	bool memory = insn->dst.kind == OPERAND_MEM || insn->src.kind == OPERAND_MEM;

	if (row->mod == MOD_REG && memory)
		fail(reader, FAY_RULE_INS_UNSUPPORTED, "this instruction with a memory operand");
	if (row->mod == MOD_REGF && memory)
		fail(reader, FAY_RULE_INS_FORBIDDEN, "this instruction with a memory operand");
	if (row->mod == MOD_MEM && !memory)
		fail(reader, FAY_RULE_INS_UNSUPPORTED, "this instruction without a memory operand");
	if (reader->count_f0 && insn->dst.kind != OPERAND_MEM)
		fail(reader, FAY_RULE_DEC_PREFIX, "lock without a memory destination");
	if ((reader->rex & 15) != reader->rex_used || (reader->rex == 0x40 && !reader->needs_rex))
		fail(reader, FAY_RULE_DEC_PREFIX, "a REX prefix bit without effect");
}
