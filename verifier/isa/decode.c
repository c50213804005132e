/* SPDX-License-Identifier: MIT */
/*
 * The allow-list decoder: bytes to one normalised instruction, or a refusal.
 *
 * It reads a deliberately small language. opcodes.def lists every opcode that is allowed and how
 * its operands are encoded; what is not there does not exist. Prefixes are stricter than the CPU's:
 * each opcode has one legal set (optionally 66 for 16 bits, F0 on read-modify-write of memory, one
 * REX directly before the opcode, every bit of which must have an effect). Segment overrides, 67,
 * F2, repeated prefixes and prefixes on branches never occur in what compilers emit for general
 * registers, and are where decoders and CPUs are known to differ, so they are refused; but for 67
 * E8, which ld writes where it makes `call *f@GOTPCREL(%rip)` a direct call: no CPU forms an
 * address there, and it is in nearly every program. For the same reason redundant forms (a SIB byte
 * that says nothing, undocumented aliases) are refused, except padding: the no-operations that GNU
 * as and LLVM emit are matched byte by byte, and endbr64 too, because some distributions' gcc
 * starts every function with it (it does nothing in a process without CET, and nothing of note in
 * one with it).
 *
 * decode_operands.c reads the operands. Limits: no x87; vectors are decode_vector.c's. The meaning
 * comes from here alone; agree.c has two other decoders object.
 */
#include <stdio.h>
#include <string.h>

#include "decode_parts.h"
#include "vector.h"

#define MAX_LENGTH 15 /* Intel SDM volume 2, 2.3.11 */
#define MAX_PREFIXES 14

enum map { MAP_ONE, MAP_TWO, MAP_F3ONE, MAP_F3TWO, MAP_THREE, MAP_COUNT };
enum row_kind { ROW_ABSENT, ROW_ALLOW, ROW_REFUSE };

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
#define ALLOW(map, first, last, ext, op, form, width, lock, mod)                                   \
	[MAP_##map][first... last][EXT_##ext] = { ROW_ALLOW,      OP_##op,   FORM_##form,          \
						  WIDTH_##width,  MOD_##mod, LOCKED_##lock,        \
						  EXTENDED_##ext, 0,         NULL },
#define REFUSE(map, first, last, ext, rule, why)                                                   \
	[MAP_##map][first... last][EXT_##ext] = { ROW_REFUSE,      0,  0, 0, 0, false, false,      \
						  FAY_RULE_##rule, why },
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
#define VEX(map, pp, opcode, ext, op, form)                                                        \
	{ map,                                                                                     \
	  pp,                                                                                      \
	  opcode,                                                                                  \
	  ext,                                                                                     \
	  { ROW_ALLOW, OP_##op, FORM_##form, WIDTH_Y, MOD_EITHER, false, ext != 8, 0, NULL } },
#include "opcodes.def"
#undef ALLOW
#undef REFUSE
#undef VEX
};

uint8_t fay_reader_take8(struct reader *reader)
{
	if (reader->at >= reader->size) {
		reader->overrun = true;
		return 0;
	}
	return reader->bytes[reader->at++];
}

int64_t fay_reader_take_signed(struct reader *reader, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)fay_reader_take8(reader) << 8 * i;
	switch (size) {
	case 1: return (int8_t)value;
	case 2: return (int16_t)value;
	case 4: return (int32_t)value;
	default: return (int64_t)value;
	}
}

/* Legacy prefixes, then REX. Collected first and judged later, so that a forbidden opcode is named
 * as such whatever precedes it. */
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
		else if (byte == 0x26 || byte == 0x2e || byte == 0x36 || byte == 0x3e ||
			 byte == 0x64 || byte == 0x65)
			reader->count_segment++;
		else
			break;
		if (count == MAX_PREFIXES) {
			fail(reader, FAY_RULE_DEC_PREFIX, "too many prefixes");
			return;
		}
	}
	if (reader->at < reader->size && (reader->bytes[reader->at] & 0xf0) == 0x40) {
		reader->rex = fay_reader_take8(reader);
		reader->has_rex = true;
	}
}

static bool is_prefix(uint8_t byte)
{
	static const uint8_t prefixes[] = { 0x66, 0xf0, 0xf2, 0xf3, 0x67, 0x26,
					    0x2e, 0x36, 0x3e, 0x64, 0x65 };
	return (byte & 0xf0) == 0x40 || memchr(prefixes, byte, sizeof(prefixes));
}

/* Finds the row of the opcode. The reg field of the byte after the opcode selects among extended
 * rows; there may be no such byte. */
static void read_opcode(struct reader *reader)
{
	enum map map = MAP_ONE;
	unsigned digit;

	reader->opcode = fay_reader_take8(reader);
	if (reader->has_rex && is_prefix(reader->opcode)) {
		fail(reader, FAY_RULE_DEC_PREFIX,
		     "a REX prefix that is not directly before the opcode");
		return;
	}
	if (reader->opcode == 0x0f) {
		map = MAP_TWO;
		reader->opcode = fay_reader_take8(reader);
	}
	if (map == MAP_TWO && reader->opcode == 0x38) {
		map = MAP_THREE;
		reader->opcode = fay_reader_take8(reader);
	}
	if (reader->overrun)
		return;
	digit = reader->at < reader->size ? reader->bytes[reader->at] >> 3 & 7 : 0;
	reader->row = &rows[map][reader->opcode][digit];
	if (map <= MAP_TWO && reader->count_f3 == 1 &&
	    rows[map + MAP_F3ONE][reader->opcode][digit].kind == ROW_ALLOW) {
		reader->row = &rows[map + MAP_F3ONE][reader->opcode][digit];
		reader->count_f3 = 0;
		if (reader->count66)
			fail(reader, FAY_RULE_DEC_PREFIX, "66 together with F3");
	}
}

/*
 * A three-byte VEX prefix before an opcode with general registers, or nothing: then the reader is
 * left at the start. Its bits become those of a REX prefix, so that the same rule holds: each has
 * an effect.
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

		if (row->map != (b[1] & 31) || row->pp != (b[2] & 3) || row->opcode != b[3] ||
		    (row->ext != 8 && row->ext != digit))
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
			fail(reader, FAY_RULE_DEC_ENCODING,
			     "VEX.L on an instruction with general registers");
		return true;
	}
	return false;
}

static void check_row(struct reader *reader)
{
	const struct row *row = reader->row;

	if (row->kind == ROW_REFUSE)
		fail(reader, row->rule, row->why);
	if (reader->count_segment ||
	    reader->count67 > (row->kind == ROW_ALLOW && row->form == FORM_CALL32))
		fail(reader, FAY_RULE_DEC_PREFIX, "an address-size or segment prefix");
	if (reader->count_f2 || reader->count_f3)
		fail(reader, FAY_RULE_DEC_PREFIX, "a repeat prefix");
	if (row->kind == ROW_ABSENT)
		fail(reader, FAY_RULE_DEC_ENCODING, "not an allowed opcode");
	if (reader->count66 > 1 || reader->count_f0 > 1)
		fail(reader, FAY_RULE_DEC_PREFIX, "a repeated prefix");
	if (reader->count66 && row->width != WIDTH_V)
		fail(reader, FAY_RULE_DEC_PREFIX,
		     "66 on an instruction without a 16-bit form here");
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
	case WIDTH_B: insn->width = 8; break;
	case WIDTH_V:
	case WIDTH_Y:
		reader->rex_used |= reader->rex & REX_W;
		insn->width = w ? 64 : reader->count66 ? 16 : 32;
		break;
	case WIDTH_W:
		reader->rex_used |= reader->rex & REX_W;
		if (!w)
			fail(reader, FAY_RULE_DEC_ENCODING,
			     "a form without REX.W that does nothing useful");
		break;
	case WIDTH_Q:
	case WIDTH_N: break;
	}
	insn->src_width = insn->width;
}

static void finish(struct reader *reader, struct fay_insn *insn)
{
	struct fay_operand *operands[] = { &insn->dst, &insn->src };

	insn->length = (uint8_t)reader->at;
	insn->locked = reader->count_f0;
	for (unsigned i = 0; i < 2; i++) {
		if (operands[i]->kind == OPERAND_MEM && operands[i]->rip)
			operands[i]->disp =
				(int64_t)(insn->address + reader->at + (uint64_t)operands[i]->disp);
	}
	if (fay_op_table[insn->op].attributes & ATTR_CC)
		insn->cc = reader->opcode & 15;
	if (insn->op == OP_CALL_SLOT)
		insn->target = (uint64_t)insn->src.disp;
	if (insn->op == OP_CALL_SLOT || insn->op == OP_LFENCE || insn->op == OP_MFENCE)
		insn->src = (struct fay_operand){ .base = FAY_NO_REG, .index = FAY_NO_REG };
}

/*
 * Padding as GNU as and LLVM emit it (gas/config/tc-i386.c, X86AsmBackend.cpp), and endbr64. The
 * long ones differ only in the number of leading 66. Returns the length, 0 if it is none of them.
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
		{ 2, { 0xf3, 0x90 } },             /* pause */
	};

	if (bytes[0] != 0x90 && bytes[0] != 0x66 && bytes[0] != 0x0f && bytes[0] != 0xf3)
		return 0;
	for (size_t i = 0; i < sizeof(nops) / sizeof(*nops); i++) {
		if (nops[i].length <= available &&
		    memcmp(bytes, nops[i].bytes, nops[i].length) == 0)
			return nops[i].length;
	}
	return 0;
}

static struct fay_refusal refuse(struct fay_arena *arena, const struct reader *reader,
				 uint64_t address)
{
	char text[3 * MAX_LENGTH + 1] = "";
	size_t shown = reader->at ? reader->at : 1;

	for (size_t i = 0; i < shown && i < reader->size; i++)
		snprintf(text + 3 * i, 4, "%02x ", reader->bytes[i]);
	if (*text)
		text[strlen(text) - 1] = '\0';
	return fay_refuse(arena, reader->rule, address, "%s (bytes %s)", reader->why, text);
}

/* 0F 38 is the vector decoder's but for these two, which have no repeat prefix (with F2 they are
 * crc32). */
static bool is_movbe(const struct reader *reader)
{
	size_t at = 0;

	if (at < reader->size && reader->bytes[at] == 0x66)
		at++;
	if (at < reader->size && (reader->bytes[at] & 0xf0) == 0x40)
		at++;
	return at + 2 < reader->size && reader->bytes[at] == 0x0f &&
	       reader->bytes[at + 1] == 0x38 && (reader->bytes[at + 2] & 0xfe) == 0xf0;
}

struct fay_refusal fay_decode(struct fay_arena *arena, const uint8_t *bytes, size_t available,
			      uint64_t address, struct fay_insn *insn)
{
	static const struct fay_operand none = { .base = FAY_NO_REG, .index = FAY_NO_REG };
	struct reader reader = { .bytes = bytes,
				 .size = available < MAX_LENGTH ? available : MAX_LENGTH };
	size_t nop = available ? match_nop(bytes, available) : 0;
	enum fay_vector_decoding vector;
	bool vex;

	*insn = (struct fay_insn){ .address = address,
				   .op = OP_NOP,
				   .width = 64,
				   .src_width = 64,
				   .dst = none,
				   .src = none,
				   .src2 = none };
	if (nop) {
		insn->length = (uint8_t)nop;
		if (nop == 2 && bytes[0] == 0xf3)
			insn->op = OP_PAUSE;
		return (struct fay_refusal){ .rule = FAY_RULE_NONE };
	}
	vex = read_vex(&reader);
	vector = vex || is_movbe(&reader) ? VECTOR_NOT
					  : fay_decode_vector(bytes, available, address, insn,
							      &reader.rule, &reader.why);
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
		fay_operands_read(&reader, insn);
		/* Bytes that are missing read as zero, so only what was judged before the end
		 * counts. */
		if (!reader.overrun)
			fay_operands_check(&reader, insn);
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
