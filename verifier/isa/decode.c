/* SPDX-License-Identifier: MIT */
/*
 * The allow-list decoder: bytes to one normalised instruction, or a refusal.
 *
 * It reads a deliberately small language. opcodes.def lists every opcode of general instructions
 * that is allowed and how its operands are encoded, opcodes_vector.def those of vectors; what is
 * not there does not exist. Prefixes are stricter than the CPU's: each opcode has one legal set
 * (optionally 66 for 16 bits, F0 on read-modify-write of memory, one REX directly before the
 * opcode, every bit of which must have an effect). Segment overrides, 67, F2, repeated prefixes and
 * prefixes on branches never occur in what compilers emit for general registers, and are where
 * decoders and CPUs are known to differ, so they are refused; but for 67 E8, which ld writes where
 * it makes `call *f@GOTPCREL(%rip)` a direct call: no CPU forms an address there, and it is in
 * nearly every program. For the same reason redundant forms (a SIB byte that says nothing,
 * undocumented aliases) are refused, except padding: the no-operations that GNU as and LLVM emit
 * are matched byte by byte, and endbr64 too, because some distributions' gcc starts every function
 * with it (it does nothing in a process without CET, and nothing of note in one with it).
 *
 * Vector instructions have one mandatory prefix or none. A VEX prefix has nothing before it and its
 * two-byte form wherever that can say the same; VEX.vvvv = 1111 where no register is meant; VEX.W
 * and VEX.L as the row says, 0 where the manual ignores them (Intel SDM volume 2, 2.3 and the
 * instruction pages).
 *
 * decode_operands.c reads the operands. Limits: no x87, no EVEX, no MMX registers, no gather (its
 * index is a vector). The meaning comes from here alone; agree.c has two other decoders object.
 */
#include <string.h>

#include "decode_parts.h"

/* By map, opcode and ModRM's reg field. An operation of NOP (0): no row. GCC's -Woverride-init
 * (part of -Wextra) makes two lines for one opcode a warning. */
static const struct row rows[MAP_COUNT][256][8] = {
#define ALLOW(map, first, last, ext, op, form, width, lock, mod)                                   \
	[MAP_##map][first... last][FIRST_##ext... LAST_##ext] = { OP_##op, FORM_##form,            \
								  WIDTH_##width, MOD_##mod,        \
								  LOCK_##lock },
#define VEX(map, pp, opcode, ext, op, form)                                                        \
	[MAP_VEX + 4 * (map - 2) +                                                                 \
		pp][opcode][FIRST_##ext... LAST_##ext] = { OP_##op, FORM_##form, WIDTH_Y,          \
							   MOD_EITHER, LOCK_NOLOCK },
#include "opcodes.def"
};

/* By map, prefix and opcode: the last row of fay_vector_rows, plus one. */
enum { FIRST_ROW = __COUNTER__ + 1 };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const uint16_t last_row[VMAP_COUNT][VPP_COUNT][256] = {
#define VECTOR(encodings, name, map, pp, opcode, ...)                                              \
	[VMAP_##map][VPP_##pp][opcode] = __COUNTER__ - FIRST_ROW + 1,
#include "opcodes_vector.def"
};
#pragma GCC diagnostic pop

static const uint8_t prefixes[256] = {
	[0x66] = PREFIX_66,      [0xf3] = PREFIX_F3,      [0xf2] = PREFIX_F2,
	[0xf0] = PREFIX_F0,      [0x67] = PREFIX_67,      [0x26] = PREFIX_SEGMENT,
	[0x2e] = PREFIX_SEGMENT, [0x36] = PREFIX_SEGMENT, [0x3e] = PREFIX_SEGMENT,
	[0x64] = PREFIX_SEGMENT, [0x65] = PREFIX_SEGMENT, [0x40 ... 0x4f] = PREFIX_REX,
};

static const struct fay_operand no_operand = { .base = FAY_NO_REG, .index = FAY_NO_REG };

uint8_t fay_reader_take8(struct reader *reader)
{
	if (reader->at >= reader->size) {
		reader->overrun = true;
		return 0;
	}
	return reader->bytes[reader->at++];
}

/* Nothing wrong so far. */
static bool fine(const struct reader *reader)
{
	return reader->rule == FAY_RULE_NONE && !reader->overrun;
}

/* Legacy prefixes, then REX. Collected first and judged later, so that a forbidden opcode is named
 * as such whatever precedes it. */
static void read_prefixes(struct reader *reader)
{
	for (; reader->at < reader->size; reader->at++) {
		uint8_t prefix = prefixes[reader->bytes[reader->at]];

		if (prefix == PREFIX_NONE || prefix == PREFIX_REX)
			break;
		reader->pp = reader->at ? PREFIX_SEVERAL : prefix;
		reader->count[prefix]++;
	}
	if (reader->at == MAX_LENGTH)
		fail(reader, FAY_RULE_DEC_PREFIX, "too many prefixes");
	else if (reader->at < reader->size && prefixes[reader->bytes[reader->at]] == PREFIX_REX)
		reader->rex = fay_reader_take8(reader);
}

/* Behind C4 or C5. VEX has R, X, B, inverted, from the top bit down, as REX has them in bits 2, 1,
 * 0; the same rule holds for them: each has an effect. */
static void read_vex(struct reader *reader, bool three)
{
	uint8_t first = fay_reader_take8(reader), last = three ? fay_reader_take8(reader) : first;

	reader->vex = true;
	reader->map = three ? first & 31 : 1;
	reader->rex = three ? (~first >> 5 & 7) | (last >> 4 & REX_W) : ~first >> 5 & REX_R;
	reader->vvvv = ~last >> 3 & 15;
	reader->length = last & 4 ? 32 : 16;
	reader->pp = last & 3;
	reader->opcode = fay_reader_take8(reader);
	if (reader->map < 1 || reader->map > 3)
		fail(reader, FAY_RULE_DEC_ENCODING, "a VEX prefix with a reserved opcode map");
	else if (three && reader->map == 1 && !(reader->rex & (REX_B | REX_X | REX_W)))
		fail(reader, FAY_RULE_DEC_PREFIX,
		     "a three-byte VEX prefix where the two-byte form suffices");
}

static void read_opcode(struct reader *reader)
{
	reader->opcode = fay_reader_take8(reader);
	if (reader->rex && prefixes[reader->opcode] != PREFIX_NONE) {
		fail(reader, FAY_RULE_DEC_PREFIX,
		     "a REX prefix that is not directly before the opcode");
	} else if (reader->opcode == 0xc4 || reader->opcode == 0xc5) {
		/* The CPU raises #UD for most, and decoders differ. */
		if (reader->at > 1)
			fail(reader, FAY_RULE_DEC_PREFIX, "a prefix before VEX");
		else
			read_vex(reader, reader->opcode == 0xc4);
	} else if (reader->opcode == 0x0f) {
		reader->map = 1;
		reader->opcode = fay_reader_take8(reader);
		if (reader->opcode == 0x38 ||
		    (reader->opcode == 0x3a && reader->at < reader->size)) {
			reader->map = reader->opcode == 0x38 ? 2 : 3;
			reader->opcode = fay_reader_take8(reader);
		}
	}
}

/* Whether a row of the opcode and encoding is the instruction's. */
static bool row_fits(const struct fay_vector_row *row, const struct reader *reader, bool memory)
{
	bool wide = reader->rex & REX_W;

	if (row->ext != VEXT_ANY && row->ext != reader->digit)
		return false;
	if (row->mod == (memory ? VMOD_REG : VMOD_MEM) ||
	    (row->w != VW_GW && (row->w == VW_W1) != wide))
		return false;
	if (reader->length == 32)
		return row->wide != VSET_NONE;
	return (row->encodings & VENCODING_LEGACY) || row->set != VSET_NONE;
}

/* The rows of one opcode stand together; the first from below that fits. False: there is none of
 * this encoding, so that the opcode may be a general instruction's. */
static bool find_vector(struct reader *reader, bool memory)
{
	uint8_t encoding = reader->vex ? VENCODING_VEX : VENCODING_LEGACY;
	bool any = false;

	if (reader->map == 0 || reader->pp >= VPP_COUNT)
		return false;
	for (unsigned i = last_row[reader->map - 1][reader->pp][reader->opcode]; i > 0; i--) {
		const struct fay_vector_row *row = &fay_vector_rows[i - 1];

		if (row->map != reader->map - 1 || row->pp != reader->pp ||
		    row->opcode != reader->opcode)
			break;
		if (!(row->encodings & encoding))
			continue;
		any = true;
		if (!row_fits(row, reader, memory))
			continue;
		reader->vector = row;
		return true;
	}
	if (any)
		fail(reader, FAY_RULE_DEC_ENCODING,
		     "a form of this vector instruction that is not allowed (width, W or L bit, or "
		     "operand)");
	return any;
}

/* The byte after the opcode, ModRM, selects among rows; there may be no such byte, then 0 does. */
static void find_row(struct reader *reader)
{
	uint8_t modrm = reader->at < reader->size ? reader->bytes[reader->at] : 0;
	unsigned map = reader->map;

	reader->digit = modrm >> 3 & 7;
	if (find_vector(reader, modrm >> 6 != 3))
		return;
	if (reader->vex)
		map = map == 1 ? MAP_EMPTY : MAP_VEX + 4 * (map - 2) + reader->pp;
	else if (map <= MAP_TWO && reader->count[PREFIX_F3] == 1 &&
		 rows[map + MAP_F3ONE][reader->opcode][reader->digit].op != OP_NOP) {
		map += MAP_F3ONE; /* the F3 is part of the opcode */
		reader->count[PREFIX_F3] = 0;
	}
	reader->row = &rows[map][reader->opcode][reader->digit];
	reader->absent = reader->row->op == OP_NOP;
}

static void check_row(struct reader *reader)
{
	const struct row *row = reader->row;
	const uint8_t *count = reader->count;

	if (reader->absent && reader->vex)
		fail(reader, FAY_RULE_INS_UNSUPPORTED, "a VEX instruction outside the subset");
	if (reader->length == 32)
		fail(reader, FAY_RULE_DEC_ENCODING,
		     "VEX.L on an instruction with general registers");
	if (count[PREFIX_SEGMENT] || count[PREFIX_67] > (row->form == FORM_CALL32) ||
	    count[PREFIX_F2] || count[PREFIX_F3])
		fail(reader, FAY_RULE_DEC_PREFIX, "an address-size, segment or repeat prefix");
	if (reader->absent)
		fail(reader, FAY_RULE_DEC_ENCODING, "not an allowed opcode");
	if (count[PREFIX_66] > 1 || count[PREFIX_F0] > 1)
		fail(reader, FAY_RULE_DEC_PREFIX, "a repeated prefix");
	if (count[PREFIX_66] && (row->width != WIDTH_V || (reader->rex & REX_W)))
		fail(reader, FAY_RULE_DEC_PREFIX, "66 where there is no 16-bit form");
	if (count[PREFIX_F0] && !row->lock)
		fail(reader, FAY_RULE_DEC_PREFIX, "lock on an instruction that may not have it");
}

static void begin_general(struct reader *reader, struct fay_insn *insn)
{
	unsigned width = reader->row->width;
	bool w = reader->rex & REX_W;

	insn->op = reader->row->op;
	insn->width = width == WIDTH_B ? 8 : 64;
	if ((width == WIDTH_V || width == WIDTH_Y) && !w)
		insn->width = reader->count[PREFIX_66] ? 16 : 32;
	if (width == WIDTH_V || width == WIDTH_Y || width == WIDTH_W)
		reader->rex_used |= REX_W;
	if (width == WIDTH_W && !w)
		fail(reader, FAY_RULE_DEC_ENCODING,
		     "a form without REX.W that does nothing useful");
}

/* Bytes of the memory operand: of two shapes W doubles them. */
static unsigned memory_bytes(const struct fay_vector_row *row, unsigned length, bool wide)
{
	if (row->memory >= VMEMORY_VL)
		return length >> (row->memory - VMEMORY_VL);
	if (wide && row->memory == 4 && (row->shape == VSHAPE_XVG || row->shape == VSHAPE_GG))
		return 8;
	return row->memory;
}

static void begin_vector(struct reader *reader, struct fay_insn *insn)
{
	const struct fay_vector_row *row = reader->vector;
	bool wide = reader->rex & REX_W;

	insn->op = OP_VECTOR;
	insn->row = (uint16_t)(row - fay_vector_rows);
	insn->vector = reader->length;
	insn->vex = reader->vex;
	insn->access = (uint8_t)memory_bytes(row, reader->length, wide);
	insn->width = wide && row->w != VW_W0 ? 64 : 32;
	reader->rex_used |= REX_W; /* it was matched with the row */
}

static void finish(struct reader *reader, struct fay_insn *insn)
{
	insn->length = (uint8_t)reader->at;
	insn->locked = reader->count[PREFIX_F0];
	if (insn->dst.rip)
		insn->dst.disp = (int64_t)(insn->address + reader->at + (uint64_t)insn->dst.disp);
	if (insn->src.rip)
		insn->src.disp = (int64_t)(insn->address + reader->at + (uint64_t)insn->src.disp);
	if (fay_op_table[insn->op].attributes & ATTR_CC)
		insn->cc = reader->opcode & 15;
	if (insn->op == OP_CALL_SLOT && insn->src.kind == OPERAND_REG)
		insn->op = OP_CALL_REG;
	if (insn->op == OP_CALL_SLOT)
		insn->target = (uint64_t)insn->src.disp;
	if (insn->op == OP_CALL_SLOT || insn->op == OP_LFENCE || insn->op == OP_MFENCE)
		insn->src = no_operand;
}

/*
 * Padding as GNU as and LLVM emit it (gas/config/tc-i386.c, X86AsmBackend.cpp), and endbr64.
 * Returns the length, 0 if it is none of them.
 */
static size_t match_nop(const uint8_t *bytes, size_t available)
{
	static const struct {
		uint8_t least, most; /* bytes 66 before it */
		uint8_t length, bytes[9];
	} nops[] = {
		{ 0, 1, 1, { 0x90 } },
		{ 0, 0, 3, { 0x0f, 0x1f, 0x00 } },
		{ 0, 0, 4, { 0x0f, 0x1f, 0x40, 0x00 } },
		{ 0, 1, 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
		{ 0, 0, 7, { 0x0f, 0x1f, 0x80 } },
		{ 0, 1, 8, { 0x0f, 0x1f, 0x84 } },
		{ 1, 6, 9, { 0x2e, 0x0f, 0x1f, 0x84 } },
		{ 0, 0, 4, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
		{ 0, 0, 2, { 0xf3, 0x90 } },             /* pause */
	};
	size_t n = 0;

	while (n < available && n < MAX_LENGTH && bytes[n] == 0x66)
		n++;
	if (n == available ||
	    (bytes[n] != 0x90 && bytes[n] != 0x0f && bytes[n] != 0x2e && bytes[n] != 0xf3))
		return 0;
	for (size_t i = 0; i < sizeof(nops) / sizeof(*nops); i++)
		if (n >= nops[i].least && n <= nops[i].most && nops[i].length <= available - n &&
		    memcmp(bytes + n, nops[i].bytes, nops[i].length) == 0)
			return n + nops[i].length;
	return 0;
}

static void decode(struct reader *reader, struct fay_insn *insn)
{
	read_prefixes(reader);
	if (fine(reader))
		read_opcode(reader);
	if (fine(reader))
		find_row(reader);
	if (fine(reader) && !reader->vector)
		check_row(reader);
	if (!fine(reader))
		return;
	if (reader->vector)
		begin_vector(reader, insn);
	else
		begin_general(reader, insn);
	fay_operands_read(reader, insn);
	/* Bytes that are missing read as zero, so only what was judged before the end counts. */
	if (!reader->overrun)
		fay_operands_check(reader, insn);
}

void fay_reader_run(struct reader *reader, const uint8_t *bytes, size_t available, uint64_t address,
		    struct fay_insn *insn)
{
	size_t nop = available ? match_nop(bytes, available) : 0;

	*reader = (struct reader){ .bytes = bytes,
				   .size = available < MAX_LENGTH ? available : MAX_LENGTH,
				   .length = 16 };
	*insn = (struct fay_insn){ .address = address,
				   .length = (uint8_t)nop,
				   .op = nop == 2 && bytes[0] == 0xf3 ? OP_PAUSE : OP_NOP,
				   .width = 64,
				   .src_width = 64,
				   .dst = no_operand,
				   .src = no_operand,
				   .src2 = no_operand };
	if (nop)
		return;
	decode(reader, insn);
	if (reader->overrun) {
		reader->rule = FAY_RULE_DEC_TRUNCATED;
		reader->why = "the instruction runs past the end of the code";
	}
	if (reader->rule == FAY_RULE_NONE)
		finish(reader, insn);
}

enum fay_rule fay_decode_bytes(const uint8_t *bytes, size_t available, uint64_t address,
			       struct fay_insn *insn)
{
	struct reader reader;

	fay_reader_run(&reader, bytes, available, address, insn);
	return reader.rule;
}
