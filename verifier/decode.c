/* SPDX-License-Identifier: MIT */
/*
 * The allow-list decoder: bytes to one normalised instruction, or a refusal.
 *
 * It reads a deliberately small language. opcodes.def lists every opcode that is allowed and how its operands are encoded; what is not there does not
 * exist. Prefixes are stricter than the CPU's: each opcode has one legal set (optionally 66 for 16 bits, F0 on read-modify-write of memory, one REX
 * directly before the opcode, every bit of which must have an effect). Segment overrides, 67, F2, repeated prefixes and prefixes on branches
 * never occur in what compilers emit for general registers, and are where decoders and CPUs are known to differ, so they are refused; but for 67 E8, which
 * ld writes where it makes `call *f@GOTPCREL(%rip)` a direct call: no CPU forms an address there, and it is in nearly every program.
 * For the same reason redundant forms (a SIB byte that says nothing, undocumented aliases) are refused, except padding: the no-operations
 * that GNU as and LLVM emit are matched byte by byte, and endbr64 too, because some distributions' gcc starts every function with it
 * (it does nothing in a process without CET, and nothing of note in one with it).
 *
 * Limits: no x87; vectors are decode_vector.c's. The meaning comes from here alone; agree.c has two other decoders object.
 */
#include <stdio.h>
#include <string.h>

#include "decode.h"
#include "report.h"
#include "vector.h"

#define MAX_LENGTH 15 /* Intel SDM volume 2, 2.3.11 */
#define MAX_PREFIXES 14

enum form {
	FORM_NONE,
	FORM_RM_R,     /* dst r/m, src reg */
	FORM_R_RM,     /* dst reg, src r/m */
	FORM_R_RM8, FORM_R_RM16, FORM_R_RM32, /* the same with a narrower source */
	FORM_RM_IZ,    /* dst r/m, immediate of the operand's width, at most 32 bits */
	FORM_RM_IB,    /* dst r/m, 8-bit immediate */
	FORM_A_IZ,     /* dst al/ax/eax/rax, immediate */
	FORM_RM,       /* dst r/m */
	FORM_RM_SRC,   /* src r/m */
	FORM_RM_1,     /* dst r/m, src 1 */
	FORM_RM_CL,    /* dst r/m, src cl */
	FORM_RM_R_IB, FORM_RM_R_CL, /* dst r/m, src reg, src2 8-bit count or cl */
	FORM_R_RM_IZ, FORM_R_RM_IB, /* dst reg, src r/m, src2 immediate */
	FORM_O,        /* dst: register in the opcode's low bits */
	FORM_O_SRC,    /* src: likewise */
	FORM_O_IV,     /* dst: likewise, src immediate of the operand's full width */
	FORM_A_O,      /* dst rax, src register in the opcode */
	FORM_IB, FORM_IZ, /* src immediate */
	FORM_J8, FORM_J32,
	FORM_CALL32,   /* the same, and one 67 may stand before it */
	FORM_EXTEND_A, /* cbw cwde cdqe */
	FORM_SLOT,     /* call *disp(%rip), call *%reg */
	FORM_RM_JUMP,  /* jmp *reg */
	FORM_MOVS,     /* dst [rdi], src [rsi] */
	FORM_STOS,     /* dst [rdi], src rax */
	FORM_FENCE,
	FORM_VEX_R_V_RM, /* dst reg, src2 vvvv, src r/m */
	FORM_VEX_V_RM,   /* dst vvvv, src r/m */
	FORM_VEX_R_RM_IB, /* dst reg, src r/m, src2 immediate */
};

enum width { WIDTH_B, WIDTH_V, WIDTH_Y, WIDTH_Q, WIDTH_W, WIDTH_N };
enum mod { MOD_EITHER, MOD_REG, MOD_REGF, MOD_MEM };
enum map { MAP_ONE, MAP_TWO, MAP_F3ONE, MAP_F3TWO, MAP_THREE, MAP_COUNT };
enum row_kind { ROW_ABSENT, ROW_ALLOW, ROW_REFUSE };

struct row {
	uint8_t kind, op, form, width, mod;
	bool lock, extended; /* extended: the reg field is part of the opcode */
	uint8_t rule;        /* ROW_REFUSE: enum fay_rule */
	const char *why;
};

#define EXT_ANY 0 ... 7
#define EXT_0 0
#define EXT_1 1
#define EXT_2 2
#define EXT_3 3
#define EXT_4 4
#define EXT_5 5
#define EXT_6 6
#define EXT_7 7
#define EXTENDED_ANY false
#define EXTENDED_0 true
#define EXTENDED_1 true
#define EXTENDED_2 true
#define EXTENDED_3 true
#define EXTENDED_4 true
#define EXTENDED_5 true
#define EXTENDED_6 true
#define EXTENDED_7 true
#define LOCKED_LOCK true
#define LOCKED_NOLOCK false

/* GCC's -Woverride-init (part of -Wextra) makes two lines for one opcode a warning. */
static const struct row rows[MAP_COUNT][256][8] = {
#define ALLOW(map, first, last, ext, op, form, width, lock, mod)                                                                     \
	[MAP_##map][first ... last][EXT_##ext] = { ROW_ALLOW,	   OP_##op,	   FORM_##form, WIDTH_##width, MOD_##mod,             \
						   LOCKED_##lock, EXTENDED_##ext, 0,		NULL },
#define REFUSE(map, first, last, ext, rule, why)                                                                                     \
	[MAP_##map][first ... last][EXT_##ext] = { ROW_REFUSE, 0, 0, 0, 0, false, false, FAY_RULE_##rule, why },
#define VEX(map, pp, opcode, ext, op, form)
#include "opcodes.def"
#undef ALLOW
#undef REFUSE
#undef VEX
};

static const struct vex_row {
	uint8_t map, pp, opcode, ext;
	struct row row;
} vex_rows[] = {
#define ALLOW(map, first, last, ext, op, form, width, lock, mod)
#define REFUSE(map, first, last, ext, rule, why)
#define VEX(map, pp, opcode, ext, op, form)                                                                                          \
	{ map, pp, opcode, ext, { ROW_ALLOW, OP_##op, FORM_##form, WIDTH_Y, MOD_EITHER, false, ext != 8, 0, NULL } },
#include "opcodes.def"
#undef ALLOW
#undef REFUSE
#undef VEX
};

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };

struct reader {
	const uint8_t *bytes;
	size_t size, at;
	bool overrun;

	const struct row *row;
	uint8_t opcode, modrm, vvvv;
	uint8_t rex, rex_used;
	bool has_rex, needs_rex;
	unsigned count66, count67, count_f0, count_f2, count_f3, count_segment;

	enum fay_rule rule; /* first thing wrong */
	const char *why;
};

static void fail(struct reader *reader, enum fay_rule rule, const char *why)
{
	if (reader->rule != FAY_RULE_NONE)
		return;
	reader->rule = rule;
	reader->why = why;
}

static uint8_t take8(struct reader *reader)
{
	if (reader->at >= reader->size) {
		reader->overrun = true;
		return 0;
	}
	return reader->bytes[reader->at++];
}

/* A little-endian signed value of 1, 2, 4 or 8 bytes. */
static int64_t take_signed(struct reader *reader, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)take8(reader) << 8 * i;
	switch (size) {
	case 1:
		return (int8_t)value;
	case 2:
		return (int16_t)value;
	case 4:
		return (int32_t)value;
	default:
		return (int64_t)value;
	}
}

/* Legacy prefixes, then REX. Collected first and judged later, so that a forbidden opcode is named as such whatever precedes it. */
static void read_prefixes(struct reader *reader)
{
	for (unsigned count = 0; reader->at < reader->size; count++, reader->at++) {
		uint8_t byte = reader->bytes[reader->at];

		if (byte == 0x66)
			reader->count66++;
		else if (byte == 0xf0)
			reader->count_f0++;
		else if (byte == 0xf2)
			reader->count_f2++;
		else if (byte == 0xf3)
			reader->count_f3++;
		else if (byte == 0x67)
			reader->count67++;
		else if (byte == 0x26 || byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x64 || byte == 0x65)
			reader->count_segment++;
		else
			break;
		if (count == MAX_PREFIXES) {
			fail(reader, FAY_RULE_DEC_PREFIX, "too many prefixes");
			return;
		}
	}
	if (reader->at < reader->size && (reader->bytes[reader->at] & 0xf0) == 0x40) {
		reader->rex = take8(reader);
		reader->has_rex = true;
	}
}

static bool is_prefix(uint8_t byte)
{
	static const uint8_t prefixes[] = { 0x66, 0xf0, 0xf2, 0xf3, 0x67, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65 };
	return (byte & 0xf0) == 0x40 || memchr(prefixes, byte, sizeof(prefixes));
}

/* Finds the row of the opcode. The reg field of the byte after the opcode selects among extended rows; there may be no such byte. */
static void read_opcode(struct reader *reader)
{
	enum map map = MAP_ONE;
	unsigned digit;

	reader->opcode = take8(reader);
	if (reader->has_rex && is_prefix(reader->opcode)) {
		fail(reader, FAY_RULE_DEC_PREFIX, "a REX prefix that is not directly before the opcode");
		return;
	}
	if (reader->opcode == 0x0f) {
		map = MAP_TWO;
		reader->opcode = take8(reader);
	}
	if (map == MAP_TWO && reader->opcode == 0x38) {
		map = MAP_THREE;
		reader->opcode = take8(reader);
	}
	if (reader->overrun)
		return;
	digit = reader->at < reader->size ? reader->bytes[reader->at] >> 3 & 7 : 0;
	reader->row = &rows[map][reader->opcode][digit];
	if (map <= MAP_TWO && reader->count_f3 == 1 && rows[map + MAP_F3ONE][reader->opcode][digit].kind == ROW_ALLOW) {
		reader->row = &rows[map + MAP_F3ONE][reader->opcode][digit];
		reader->count_f3 = 0;
		if (reader->count66)
			fail(reader, FAY_RULE_DEC_PREFIX, "66 together with F3");
	}
}

/*
 * A three-byte VEX prefix before an opcode with general registers, or nothing: then the reader is left at the start. Its bits become those of a REX prefix, so that
 * the same rule holds: each has an effect.
 */
static bool read_vex(struct reader *reader)
{
	const uint8_t *b = reader->bytes;
	unsigned digit;

	if (reader->size < 4 || b[0] != 0xc4)
		return false;
	digit = reader->size > 4 ? b[4] >> 3 & 7 : 0;
	for (size_t i = 0; i < sizeof(vex_rows) / sizeof(*vex_rows); i++) {
		const struct vex_row *row = &vex_rows[i];

		if (row->map != (b[1] & 31) || row->pp != (b[2] & 3) || row->opcode != b[3] || (row->ext != 8 && row->ext != digit))
			continue;
		reader->row = &row->row;
		reader->opcode = b[3];
		reader->at = 4;
		reader->rex = (uint8_t)((~b[1] >> 5 & 7) | (b[2] >> 7 << 3));
		/* VEX has R, X, B from the top bit down, as REX has them in bits 2, 1, 0. */
		reader->has_rex = true;
		reader->needs_rex = true; /* and it is never one that says nothing */
		reader->vvvv = ~b[2] >> 3 & 15;
		if (b[2] & 4)
			fail(reader, FAY_RULE_DEC_ENCODING, "VEX.L on an instruction with general registers");
		return true;
	}
	return false;
}

static void check_row(struct reader *reader)
{
	const struct row *row = reader->row;

	if (row->kind == ROW_REFUSE)
		fail(reader, row->rule, row->why);
	if (reader->count_segment || reader->count67 > (row->kind == ROW_ALLOW && row->form == FORM_CALL32))
		fail(reader, FAY_RULE_DEC_PREFIX, "an address-size or segment prefix");
	if (reader->count_f2 || reader->count_f3)
		fail(reader, FAY_RULE_DEC_PREFIX, "a repeat prefix");
	if (row->kind == ROW_ABSENT)
		fail(reader, FAY_RULE_DEC_ENCODING, "not an allowed opcode");
	if (reader->count66 > 1 || reader->count_f0 > 1)
		fail(reader, FAY_RULE_DEC_PREFIX, "a repeated prefix");
	if (reader->count66 && row->width != WIDTH_V)
		fail(reader, FAY_RULE_DEC_PREFIX, "66 on an instruction without a 16-bit form here");
	if (reader->count66 && (reader->rex & REX_W))
		fail(reader, FAY_RULE_DEC_PREFIX, "66 together with REX.W");
	if (reader->count_f0 && !row->lock)
		fail(reader, FAY_RULE_DEC_PREFIX, "lock on an instruction that may not have it");
}

static void choose_width(struct reader *reader, struct fay_insn *insn)
{
	bool w = reader->rex & REX_W;

	insn->width = 64;
	switch ((enum width)reader->row->width) {
	case WIDTH_B:
		insn->width = 8;
		break;
	case WIDTH_V:
	case WIDTH_Y:
		reader->rex_used |= reader->rex & REX_W;
		insn->width = w ? 64 : reader->count66 ? 16 : 32;
		break;
	case WIDTH_W:
		reader->rex_used |= reader->rex & REX_W;
		if (!w)
			fail(reader, FAY_RULE_DEC_ENCODING, "a form without REX.W that does nothing useful");
		break;
	case WIDTH_Q:
	case WIDTH_N:
		break;
	}
	insn->src_width = insn->width;
}

static struct fay_operand operand_reg(struct reader *reader, unsigned reg, unsigned width)
{
	if (width == 8 && reg >= 4 && reg <= 7) {
		/* Without any REX these are ah, ch, dh, bh; with one, spl, bpl, sil, dil (Intel SDM volume 1, 3.4.1.1). */
		if (!reader->has_rex)
			return (struct fay_operand){ .kind = OPERAND_HIGH, .reg = (uint8_t)(reg - 4), .base = FAY_NO_REG, .index = FAY_NO_REG };
		reader->needs_rex = true;
	}
	return (struct fay_operand){ .kind = OPERAND_REG, .reg = (uint8_t)reg, .base = FAY_NO_REG, .index = FAY_NO_REG };
}

static struct fay_operand operand_imm(int64_t value)
{
	return (struct fay_operand){ .kind = OPERAND_IMM, .imm = value, .base = FAY_NO_REG, .index = FAY_NO_REG };
}

static struct fay_operand operand_string(unsigned base)
{
	return (struct fay_operand){ .kind = OPERAND_MEM, .base = (uint8_t)base, .index = FAY_NO_REG, .scale = 1 };
}

static void read_sib(struct reader *reader, unsigned mod, struct fay_operand *memory)
{
	uint8_t sib = take8(reader);
	unsigned index = (sib >> 3 & 7) | (reader->rex & REX_X ? 8 : 0), base = sib & 7;

	reader->rex_used |= reader->rex & REX_X;
	if (index != FAY_RSP) {
		memory->index = (uint8_t)index;
		memory->scale = (uint8_t)(1 << (sib >> 6));
	} else if (sib >> 6) {
		fail(reader, FAY_RULE_DEC_ENCODING, "a scale without an index");
	}
	if (mod == 0 && base == 5) {
		memory->disp = take_signed(reader, 4);
		return;
	}
	if (index == FAY_RSP && base != FAY_RSP)
		fail(reader, FAY_RULE_DEC_ENCODING, "a SIB byte that says nothing");
	reader->rex_used |= reader->rex & REX_B;
	memory->base = (uint8_t)(base | (reader->rex & REX_B ? 8 : 0));
}

/* The r/m operand. A rip-relative displacement is made absolute once the length is known. */
static struct fay_operand read_rm(struct reader *reader, unsigned width)
{
	struct fay_operand memory = { .kind = OPERAND_MEM, .base = FAY_NO_REG, .index = FAY_NO_REG, .scale = 1 };
	unsigned mod, rm;

	reader->modrm = take8(reader);
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
		memory.disp = take_signed(reader, 4);
	} else {
		reader->rex_used |= reader->rex & REX_B;
		memory.base = (uint8_t)(rm | (reader->rex & REX_B ? 8 : 0));
	}
	if (mod == 1)
		memory.disp = take_signed(reader, 1);
	else if (mod == 2)
		memory.disp = take_signed(reader, 4);
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
	return take_signed(reader, width >= 32 ? 4 : width / 8);
}

/* Counts and bit numbers are unsigned; everything else with an 8-bit immediate is sign-extended. */
static int64_t take_ib(struct reader *reader, enum fay_op op)
{
	bool count = (op >= OP_SHL && op <= OP_ROR) || (op >= OP_BT && op <= OP_BTC);
	return count ? take8(reader) : take_signed(reader, 1);
}

static void read_branch(struct reader *reader, struct fay_insn *insn, unsigned size)
{
	int64_t displacement = take_signed(reader, size);

	insn->target = insn->address + reader->at + (uint64_t)displacement;
}

/* Where an operand of a form is found. */
enum place {
	PLACE_NONE,
	PLACE_RM, PLACE_REG, PLACE_OPCODE, PLACE_VVVV, /* ModRM's r/m and reg, the opcode's low bits, VEX.vvvv */
	PLACE_RAX, PLACE_CL, PLACE_RSI, PLACE_RDI,     /* the last two: memory there */
	PLACE_IZ, PLACE_IB, PLACE_IV, PLACE_COUNT, PLACE_ONE,
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

static void read_operand(struct reader *reader, const struct fay_insn *insn, enum place place, unsigned width, struct fay_operand *o)
{
	switch (place) {
	case PLACE_NONE: case PLACE_RM: return; /* r/m has been read */
	case PLACE_REG: *o = reg_field(reader, width); return;
	case PLACE_OPCODE: *o = opcode_reg(reader, width); return;
	case PLACE_VVVV: *o = operand_reg(reader, reader->vvvv, width); return;
	case PLACE_RAX: *o = operand_reg(reader, FAY_RAX, width); return;
	case PLACE_CL: *o = operand_reg(reader, FAY_RCX, 8); return;
	case PLACE_RSI: *o = operand_string(FAY_RSI); return;
	case PLACE_RDI: *o = operand_string(FAY_RDI); return;
	case PLACE_IZ: *o = operand_imm(take_iz(reader, width)); return;
	case PLACE_IB: *o = operand_imm(take_ib(reader, insn->op)); return;
	case PLACE_IV: *o = operand_imm(take_signed(reader, width / 8)); return;
	case PLACE_COUNT: *o = operand_imm(take8(reader)); return;
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
			fail(reader, FAY_RULE_DEC_ENCODING, "a no-operation that is not one of the canonical forms");
		break;
	case FORM_SLOT:
		if (insn->src.kind == OPERAND_REG)
			insn->op = OP_CALL_REG;
		else if (!insn->src.rip)
			fail(reader, FAY_RULE_INS_FORBIDDEN, "an indirect call that is not through a helper slot (call *slot(%rip))");
		break;
	case FORM_RM_JUMP:
		if (insn->dst.rip)
			fail(reader, FAY_RULE_INS_UNSUPPORTED, "a tail call through a slot (compile with -fno-optimize-sibling-calls)");
		break;
	case FORM_FENCE:
		if (insn->src.kind == OPERAND_REG && (reader->modrm & 7))
			fail(reader, FAY_RULE_DEC_ENCODING, "a redundant encoding of a fence");
		break;
	case FORM_VEX_R_RM_IB:
		if (reader->vvvv)
			fail(reader, FAY_RULE_DEC_ENCODING, "a register in VEX.vvvv that is not used");
		break;
	default:
		break;
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

static void read_operands(struct reader *reader, struct fay_insn *insn)
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

/* What can be judged only with the operands at hand: which of memory and register, lock, REX bits without effect. */
static void check_operands(struct reader *reader, struct fay_insn *insn)
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

static void finish(struct reader *reader, struct fay_insn *insn)
{
	struct fay_operand *operands[] = { &insn->dst, &insn->src };

	insn->length = (uint8_t)reader->at;
	insn->locked = reader->count_f0;
	for (unsigned i = 0; i < 2; i++) {
		if (operands[i]->kind == OPERAND_MEM && operands[i]->rip)
			operands[i]->disp = (int64_t)(insn->address + reader->at + (uint64_t)operands[i]->disp);
	}
	if (fay_op_table[insn->op].attributes & ATTR_CC)
		insn->cc = reader->opcode & 15;
	if (insn->op == OP_CALL_SLOT)
		insn->target = (uint64_t)insn->src.disp;
	if (insn->op == OP_CALL_SLOT || insn->op == OP_LFENCE || insn->op == OP_MFENCE)
		insn->src = (struct fay_operand){ .base = FAY_NO_REG, .index = FAY_NO_REG };
}

/*
 * Padding as GNU as and LLVM emit it (gas/config/tc-i386.c, X86AsmBackend.cpp), and endbr64. The long ones differ only in the number of leading 66.
 * Returns the length, 0 if it is none of them.
 */
static size_t match_nop(const uint8_t *bytes, size_t available)
{
	static const struct {
		uint8_t length;
		uint8_t bytes[MAX_LENGTH];
	} nops[] = {
		{ 1, { 0x90 } },
		{ 2, { 0x66, 0x90 } },
		{ 3, { 0x0f, 0x1f, 0x00 } },
		{ 4, { 0x0f, 0x1f, 0x40, 0x00 } },
		{ 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
		{ 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
		{ 7, { 0x0f, 0x1f, 0x80 } },
		{ 8, { 0x0f, 0x1f, 0x84 } },
		{ 9, { 0x66, 0x0f, 0x1f, 0x84 } },
		{ 10, { 0x66, 0x2e, 0x0f, 0x1f, 0x84 } },
		{ 11, { 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84 } },
		{ 12, { 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84 } },
		{ 13, { 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84 } },
		{ 14, { 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84 } },
		{ 15, { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84 } },
		{ 4, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
		{ 2, { 0xf3, 0x90 } }, /* pause */
	};

	if (bytes[0] != 0x90 && bytes[0] != 0x66 && bytes[0] != 0x0f && bytes[0] != 0xf3)
		return 0;
	for (size_t i = 0; i < sizeof(nops) / sizeof(*nops); i++) {
		if (nops[i].length <= available && memcmp(bytes, nops[i].bytes, nops[i].length) == 0)
			return nops[i].length;
	}
	return 0;
}

static struct fay_refusal refuse(struct fay_arena *arena, const struct reader *reader, uint64_t address)
{
	char text[3 * MAX_LENGTH + 1] = "";
	size_t shown = reader->at ? reader->at : 1;

	for (size_t i = 0; i < shown && i < reader->size; i++)
		snprintf(text + 3 * i, 4, "%02x ", reader->bytes[i]);
	if (*text)
		text[strlen(text) - 1] = '\0';
	return fay_refuse(arena, reader->rule, address, "%s (bytes %s)", reader->why, text);
}

/* 0F 38 is the vector decoder's but for these two, which have no repeat prefix (with F2 they are crc32). */
static bool is_movbe(const struct reader *reader)
{
	size_t at = 0;

	if (at < reader->size && reader->bytes[at] == 0x66)
		at++;
	if (at < reader->size && (reader->bytes[at] & 0xf0) == 0x40)
		at++;
	return at + 2 < reader->size && reader->bytes[at] == 0x0f && reader->bytes[at + 1] == 0x38 && (reader->bytes[at + 2] & 0xfe) == 0xf0;
}

struct fay_refusal fay_decode(struct fay_arena *arena, const uint8_t *bytes, size_t available, uint64_t address, struct fay_insn *insn)
{
	static const struct fay_operand none = { .base = FAY_NO_REG, .index = FAY_NO_REG };
	struct reader reader = { .bytes = bytes, .size = available < MAX_LENGTH ? available : MAX_LENGTH };
	size_t nop = available ? match_nop(bytes, available) : 0;
	enum fay_vector_decoding vector;
	bool vex;

	*insn = (struct fay_insn){ .address = address, .op = OP_NOP, .width = 64, .src_width = 64, .dst = none, .src = none, .src2 = none };
	if (nop) {
		insn->length = (uint8_t)nop;
		if (nop == 2 && bytes[0] == 0xf3)
			insn->op = OP_PAUSE;
		return (struct fay_refusal){ .rule = FAY_RULE_NONE };
	}
	vex = read_vex(&reader);
	vector = vex || is_movbe(&reader) ? VECTOR_NOT : fay_decode_vector(bytes, available, address, insn, &reader.rule, &reader.why);
	if (vector == VECTOR_OK)
		return (struct fay_refusal){ .rule = FAY_RULE_NONE };
	if (vector == VECTOR_REFUSED) {
		reader.at = reader.size;
		return refuse(arena, &reader, address);
	}
	if (!vex)
		read_prefixes(&reader);
	if (!vex && reader.rule == FAY_RULE_NONE)
		read_opcode(&reader);
	if (reader.rule == FAY_RULE_NONE && !reader.overrun)
		check_row(&reader);
	if (reader.rule == FAY_RULE_NONE && !reader.overrun) {
		insn->op = reader.row->op;
		choose_width(&reader, insn);
		read_operands(&reader, insn);
		/* Bytes that are missing read as zero, so only what was judged before the end counts. */
		if (!reader.overrun)
			check_operands(&reader, insn);
	}
	if (reader.overrun) {
		reader.rule = FAY_RULE_DEC_TRUNCATED;
		reader.why = "the instruction runs past the end of the code";
	}
	if (reader.rule != FAY_RULE_NONE)
		return refuse(arena, &reader, address);
	finish(&reader, insn);
	return (struct fay_refusal){ .rule = FAY_RULE_NONE };
}
