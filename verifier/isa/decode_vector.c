/* SPDX-License-Identifier: MIT */
/*
 * Vector instructions: legacy SSE and VEX encodings to one normalised instruction.
 *
 * As in decode.c, the language is narrower than the CPU's: one mandatory prefix or none, one REX
 * directly before 0F, each bit of which has an effect; a VEX prefix with nothing before it, in its
 * two-byte form wherever that can say the same; VEX.vvvv = 1111 where no register is meant; VEX.W
 * and VEX.L as the row says, 0 where the manual ignores them (Intel SDM volume 2, 2.3 and the
 * instruction pages).
 *
 * Limits: no EVEX, no MMX registers, no gather (its index is a vector).
 */
#include <string.h>

#include "vector.h"

#define MAX_LENGTH 15

struct bytes {
	const uint8_t *at;
	size_t size, used;
	bool overrun;
	/* Prefix: REX or VEX. */
	bool vex, has_rex, wide, r, x, b;
	bool r_used, x_used, b_used;
	bool byte_register; /* spl, bpl, sil, dil: REX without a bit has an effect */
	uint8_t map, pp, vvvv, opcode, modrm;
	enum fay_rule rule;
	const char *why;
};

/* Last row with that map, prefix and opcode, plus one. */
enum { FIRST_ROW = __COUNTER__ + 1 };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const uint16_t last_row[VMAP_COUNT][VPP_COUNT][256] = {
#define BOTH(name, map, pp, opcode, ...)                                                           \
	[VMAP_##map][VPP_##pp][opcode] = __COUNTER__ - FIRST_ROW + 1,
#define SSE BOTH
#define AVX BOTH
#define NOVEC(map, pp, opcode, ...) [VMAP_##map][VPP_##pp][opcode] = __COUNTER__ - FIRST_ROW + 1,
#include "opcodes_vector.def"
#undef BOTH
#undef SSE
#undef AVX
#undef NOVEC
};
#pragma GCC diagnostic pop

static void fail(struct bytes *b, enum fay_rule rule, const char *why)
{
	if (b->rule == FAY_RULE_NONE) {
		b->rule = rule;
		b->why = why;
	}
}

static uint8_t take8(struct bytes *b)
{
	if (b->used >= b->size) {
		b->overrun = true;
		return 0;
	}
	return b->at[b->used++];
}

static int64_t take_signed(struct bytes *b, unsigned count)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < count; i++)
		value |= (uint32_t)take8(b) << 8 * i;
	return count == 1 ? (int8_t)value : (int32_t)value;
}

/* Legacy: an optional mandatory prefix, an optional REX, 0F. False: not of that form. */
static bool read_legacy(struct bytes *b)
{
	size_t i = 0;

	if (i < b->size && (b->at[i] == 0x66 || b->at[i] == 0xf2 || b->at[i] == 0xf3)) {
		b->pp = b->at[i] == 0x66 ? VPP_P66 : b->at[i] == 0xf3 ? VPP_PF3 : VPP_PF2;
		i++;
	}
	if (i < b->size && (b->at[i] & 0xf0) == 0x40) {
		uint8_t rex = b->at[i++];

		b->has_rex = true;
		b->wide = rex & 8;
		b->r = rex & 4;
		b->x = rex & 2;
		b->b = rex & 1;
	}
	if (i + 1 >= b->size || b->at[i] != 0x0f)
		return false;
	i++;
	b->map = b->at[i] == 0x38 ? VMAP_M38 : b->at[i] == 0x3a ? VMAP_M3A : VMAP_M0F;
	if (b->map != VMAP_M0F)
		i++;
	b->used = i;
	if (i >= b->size)
		return false;
	b->opcode = take8(b);
	return true;
}

static void read_vex(struct bytes *b, unsigned *length)
{
	static const uint8_t pps[] = { VPP_PNP, VPP_P66, VPP_PF3, VPP_PF2 };
	bool three = take8(b) == 0xc4;
	uint8_t first = take8(b), last = three ? take8(b) : first;
	unsigned map = three ? first & 31 : 1;

	b->vex = true;
	b->r = !(first & 0x80);
	b->x = three && !(first & 0x40);
	b->b = three && !(first & 0x20);
	b->wide = three && last & 0x80;
	b->vvvv = ~last >> 3 & 15;
	b->pp = pps[last & 3];
	*length = last & 4 ? 32 : 16;
	b->opcode = take8(b);
	if (map < 1 || map > 3)
		fail(b, FAY_RULE_DEC_ENCODING, "a VEX prefix with a reserved opcode map");
	else if (three && map == 1 && !b->x && !b->b && !b->wide)
		fail(b, FAY_RULE_DEC_PREFIX,
		     "a three-byte VEX prefix where the two-byte form suffices");
	b->map = (uint8_t)(map == 2 ? VMAP_M38 : map == 3 ? VMAP_M3A : VMAP_M0F);
}

/* A VEX prefix behind any other is refused; the CPU raises #UD for most, and decoders differ. */
static bool prefixed_vex(const struct bytes *b)
{
	static const uint8_t prefixes[] = { 0x66, 0xf0, 0xf2, 0xf3, 0x67, 0x26,
					    0x2e, 0x36, 0x3e, 0x64, 0x65 };
	size_t i = 0;

	while (i < b->size &&
	       ((b->at[i] & 0xf0) == 0x40 || memchr(prefixes, b->at[i], sizeof(prefixes))))
		i++;
	return i > 0 && i < b->size && (b->at[i] == 0xc4 || b->at[i] == 0xc5);
}

static bool row_fits(const struct fay_vector_row *row, const struct bytes *b, unsigned length)
{
	uint8_t modrm = b->used < b->size ? b->at[b->used] : 0;
	bool memory = modrm >> 6 != 3,
	     digit_fits = row->ext == 0xff || row->ext == (modrm >> 3 & 7);

	if (!(row->encodings & (b->vex ? VENCODING_VEX : VENCODING_LEGACY)) || !digit_fits)
		return false;
	if (row->rule)
		return true;
	if ((row->mod == VMOD_REG && memory) || (row->mod == VMOD_MEM && !memory) ||
	    (row->w != VW_GW && (row->w == VW_W1) != b->wide))
		return false;
	return !b->vex || (length == 32                        ? row->wide
			   : row->encodings & VENCODING_LEGACY ? true
							       : row->set) != VSET_NONE;
}

/* The rows of one opcode stand together; the first from below that fits. */
static const struct fay_vector_row *find_row(const struct bytes *b, unsigned length, bool *any)
{
	uint16_t row = last_row[b->map][b->pp][b->opcode];
	uint8_t encoding = b->vex ? VENCODING_VEX : VENCODING_LEGACY;

	*any = false;
	for (; row; row--) {
		const struct fay_vector_row *r = &fay_vector_rows[row - 1];

		if (r->map != b->map || r->pp != b->pp || r->opcode != b->opcode)
			break;
		*any |= (r->encodings & encoding) != 0;
		if (row_fits(r, b, length))
			return r;
	}
	return NULL;
}

static struct fay_operand operand(unsigned kind, unsigned reg)
{
	return (struct fay_operand){
		.kind = (uint8_t)kind, .reg = (uint8_t)reg, .base = FAY_NO_REG, .index = FAY_NO_REG
	};
}

static void read_sib(struct bytes *b, unsigned mod, struct fay_operand *memory)
{
	uint8_t sib = take8(b);
	unsigned index = (sib >> 3 & 7) | (b->x ? 8 : 0), base = sib & 7;

	b->x_used = true;
	if (index != FAY_RSP) {
		memory->index = (uint8_t)index;
		memory->scale = (uint8_t)(1 << (sib >> 6));
	} else if (sib >> 6) {
		fail(b, FAY_RULE_DEC_ENCODING, "a scale without an index");
	}
	if (mod == 0 && base == 5) {
		memory->disp = take_signed(b, 4);
		return;
	}
	if (index == FAY_RSP && base != FAY_RSP)
		fail(b, FAY_RULE_DEC_ENCODING, "a redundant SIB byte");
	b->b_used = true;
	memory->base = (uint8_t)(base | (b->b ? 8 : 0));
}

/* The r/m operand; `kind` is what a register is. */
static struct fay_operand read_rm(struct bytes *b, unsigned kind)
{
	struct fay_operand memory = {
		.kind = OPERAND_MEM, .base = FAY_NO_REG, .index = FAY_NO_REG, .scale = 1
	};
	unsigned mod = b->modrm >> 6, rm = b->modrm & 7;

	if (mod == 3) {
		b->b_used = true;
		return operand(kind, rm | (b->b ? 8 : 0));
	}
	if (rm == 4) {
		read_sib(b, mod, &memory);
	} else if (mod == 0 && rm == 5) {
		memory.rip = true;
		memory.disp = take_signed(b, 4);
	} else {
		b->b_used = true;
		memory.base = (uint8_t)(rm | (b->b ? 8 : 0));
	}
	if (mod == 1)
		memory.disp = take_signed(b, 1);
	else if (mod == 2)
		memory.disp = take_signed(b, 4);
	return memory;
}

static struct fay_operand read_reg(struct bytes *b, unsigned kind)
{
	b->r_used = true;
	return operand(kind, (b->modrm >> 3 & 7) | (b->r ? 8 : 0));
}

static unsigned memory_bytes(const struct fay_vector_row *row, unsigned length, bool wide)
{
	switch (row->memory) {
	case VMEMORY_VL: return length;
	case VMEMORY_HALF: return length / 2;
	case VMEMORY_QUARTER: return length / 4;
	case VMEMORY_EIGHTH: return length / 8;
	default:
		return (row->shape == VSHAPE_XVG ||
			(row->shape == VSHAPE_GG && row->memory == 4)) &&
				       wide
			       ? 8
			       : row->memory;
	}
}

/* The first source of three-operand forms. */
static struct fay_operand first_source(struct bytes *b, const struct fay_insn *insn)
{
	return b->vex ? operand(OPERAND_VEC, b->vvvv) : insn->dst;
}

static void read_three(struct bytes *b, struct fay_insn *insn, unsigned rm_kind, bool *vvvv)
{
	insn->src = read_rm(b, rm_kind);
	insn->dst = read_reg(b, OPERAND_VEC);
	insn->src2 = first_source(b, insn);
	*vvvv = true;
}

static void read_operands(struct bytes *b, const struct fay_vector_row *row, struct fay_insn *insn)
{
	bool vvvv = false, immediate = false;

	if (row->shape != VSHAPE_NO)
		b->modrm = take8(b);
	switch ((enum fay_vector_shape)row->shape) {
	case VSHAPE_RMI:
		immediate = true;
		/* fallthrough */
	case VSHAPE_RM:
	case VSHAPE_CMP:
		insn->src = read_rm(b, OPERAND_VEC);
		insn->dst = read_reg(b, OPERAND_VEC);
		break;
	case VSHAPE_RVMI:
	case VSHAPE_RVM:
	case VSHAPE_FMA:
		immediate = row->shape == VSHAPE_RVMI;
		read_three(b, insn, OPERAND_VEC, &vvvv);
		break;
	case VSHAPE_MRI:
	case VSHAPE_MR:
		immediate = row->shape == VSHAPE_MRI;
		insn->dst = read_rm(b, OPERAND_VEC);
		insn->src = read_reg(b, OPERAND_VEC);
		break;
	case VSHAPE_RVMK:
		read_three(b, insn, OPERAND_VEC, &vvvv);
		if (b->vex) {
			uint8_t fourth = take8(b);

			insn->imm = fourth >> 4;
			if (fourth & 15)
				fail(b, FAY_RULE_DEC_ENCODING,
				     "a register immediate with other bits set");
		}
		break;
	case VSHAPE_VMI:
		immediate = true;
		insn->src = read_rm(b, OPERAND_VEC);
		insn->dst = b->vex ? operand(OPERAND_VEC, b->vvvv) : insn->src;
		b->r_used = false;
		vvvv = true;
		break;
	case VSHAPE_XG:
		insn->src = read_rm(b, OPERAND_REG);
		insn->dst = read_reg(b, OPERAND_VEC);
		break;
	case VSHAPE_GXI:
	case VSHAPE_GX:
		immediate = row->shape == VSHAPE_GXI;
		insn->dst = read_rm(b, OPERAND_REG);
		insn->src = read_reg(b, OPERAND_VEC);
		break;
	case VSHAPE_XVGI:
	case VSHAPE_XVG:
		immediate = row->shape == VSHAPE_XVGI;
		read_three(b, insn, OPERAND_REG, &vvvv);
		break;
	case VSHAPE_GRMI:
	case VSHAPE_GRM:
		immediate = row->shape == VSHAPE_GRMI;
		insn->src = read_rm(b, OPERAND_VEC);
		insn->dst = read_reg(b, OPERAND_REG);
		break;
	case VSHAPE_GG:
		insn->src = read_rm(b, OPERAND_REG);
		insn->dst = read_reg(b, OPERAND_REG);
		b->byte_register = row->memory == 1 && insn->src.kind == OPERAND_REG &&
				   insn->src.reg >= 4 && insn->src.reg < 8;
		if (b->byte_register && !b->has_rex)
			fail(b, FAY_RULE_INS_UNSUPPORTED, "a high-byte register (ah, ch, dh, bh)");
		break;
	case VSHAPE_NO: break;
	}
	if (immediate)
		insn->imm = take8(b);
	if (b->vex && !vvvv && b->vvvv)
		fail(b, FAY_RULE_DEC_ENCODING,
		     "VEX.vvvv names a register that the instruction does not have");
}

/* Prefix bits without effect. VEX.W was matched with the row; REX.W too. */
static void check_bits(struct bytes *b)
{
	if ((b->r && !b->r_used) || (b->x && !b->x_used) || (b->b && !b->b_used) ||
	    (b->has_rex && !(b->wide || b->r || b->x || b->b || b->byte_register)))
		fail(b, FAY_RULE_DEC_PREFIX, "a REX or VEX prefix bit without effect");
}

static void finish(struct bytes *b, const struct fay_vector_row *row, unsigned length,
		   uint64_t address, struct fay_insn *insn)
{
	struct fay_operand *operands[] = { &insn->dst, &insn->src };

	insn->op = OP_VECTOR;
	insn->row = (uint16_t)(row - fay_vector_rows);
	insn->vector = (uint8_t)length;
	insn->vex = b->vex;
	insn->access = (uint8_t)memory_bytes(row, length, b->wide);
	insn->width = insn->src_width = b->wide && (row->w != VW_W0) ? 64 : 32;
	insn->length = (uint8_t)b->used;
	for (unsigned i = 0; i < 2; i++)
		if (operands[i]->kind == OPERAND_MEM && operands[i]->rip)
			operands[i]->disp =
				(int64_t)(address + b->used + (uint64_t)operands[i]->disp);
}

enum fay_vector_decoding fay_decode_vector(const uint8_t *bytes, size_t size, uint64_t address,
					   struct fay_insn *insn, enum fay_rule *rule,
					   const char **why)
{
	struct bytes b = { .at = bytes, .size = size < MAX_LENGTH ? size : MAX_LENGTH };
	const struct fay_vector_row *row = NULL;
	unsigned length = 16;
	bool any = false;

	if (prefixed_vex(&b)) {
		fail(&b, FAY_RULE_DEC_PREFIX, "a prefix before VEX");
	} else if (size && (*bytes == 0xc4 || *bytes == 0xc5)) {
		read_vex(&b, &length);
	} else if (!read_legacy(&b)) {
		return VECTOR_NOT;
	}
	if (b.rule == FAY_RULE_NONE && !b.overrun) {
		row = find_row(&b, length, &any);
		if (!row && !any && !b.vex)
			return VECTOR_NOT;
		if (row && row->rule)
			fail(&b, row->rule, row->why);
		else if (!row && any)
			fail(&b, FAY_RULE_DEC_ENCODING,
			     "a form of this vector instruction that is not allowed (width, W or L "
			     "bit, or operand)");
		else if (!row)
			fail(&b, FAY_RULE_INS_UNSUPPORTED, "a VEX instruction outside the subset");
	}
	if (b.rule == FAY_RULE_NONE && !b.overrun) {
		read_operands(&b, row, insn);
		if (!b.overrun)
			check_bits(&b);
	}
	if (b.overrun)
		*rule = FAY_RULE_DEC_TRUNCATED,
		*why = "the instruction runs past the end of the code";
	else
		*rule = b.rule, *why = b.why;
	if (*rule != FAY_RULE_NONE)
		return VECTOR_REFUSED;
	finish(&b, row, length, address, insn);
	return VECTOR_OK;
}
