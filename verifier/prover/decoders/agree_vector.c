/* SPDX-License-Identifier: MIT */
/*
 * Zydis and Capstone on vector instructions: as agree.c, by the table's names and shapes. Both must
 * show the same length, mnemonic, registers (of the same width), addresses and immediates as *insn;
 * Zydis, which says it, also the same size of the memory operand.
 *
 * Capstone 4.0.2 has a number of its own for each predicate of cmpps and the like, in the
 * predicates' order after the general one, and calls the conversions of 128 bits from memory
 * VCVTPD2DQX and so on.
 */
#include <string.h>

#include "agree_parts.h"

/* Both libraries' numbers for the legacy and the VEX name of each row. */
#define BOTH(name, ...)                                                                            \
	{ { ZYDIS_MNEMONIC_##name, ZYDIS_MNEMONIC_V##name }, { X86_INS_##name, X86_INS_V##name } },
#define SSE(name, ...)                                                                             \
	{ { ZYDIS_MNEMONIC_##name, ZYDIS_MNEMONIC_INVALID }, { X86_INS_##name, X86_INS_INVALID } },
#define AVX(name, ...)                                                                             \
	{ { ZYDIS_MNEMONIC_INVALID, ZYDIS_MNEMONIC_##name }, { X86_INS_INVALID, X86_INS_##name } },
static const struct {
	uint16_t zydis[2], capstone[2];
} names[] = {
#include "verifier/isa/opcodes_vector.def"
};

#define VECTOR_OPERANDS 4

/* An operand as either library shows it. Registers: class in the high byte, number in the low one.
 * */
enum {
	CLASS_NONE = 0,
	CLASS_G8 = 1,
	CLASS_G16,
	CLASS_G32,
	CLASS_G64,
	CLASS_XMM,
	CLASS_YMM,
	CLASS_RIP,
	CLASS_OTHER
};
struct shown {
	uint8_t kind;
	uint16_t reg, base, index;
	uint8_t scale;
	unsigned bytes; /* 0: not said */
	int64_t value;
};

static uint16_t code(unsigned class, unsigned number)
{
	return (uint16_t)(class << 8 | number);
}

/* ---- what the table says ---- */

static unsigned vector_class(unsigned bytes)
{
	return bytes == 32 ? CLASS_YMM : CLASS_XMM;
}

static struct shown from_operand(const struct fay_insn *insn, const struct fay_operand *o,
				 unsigned class)
{
	struct shown s = {
		.kind = o->kind, .scale = o->scale, .bytes = insn->access, .value = o->disp
	};

	if (o->kind == OPERAND_REG || o->kind == OPERAND_VEC) {
		s.kind = OPERAND_REG;
		s.reg = code(class, o->reg);
	} else {
		s.base = o->rip                  ? code(CLASS_RIP, 0)
			 : o->base == FAY_NO_REG ? 0
						 : code(CLASS_G64, o->base);
		s.index = o->index == FAY_NO_REG ? 0 : code(CLASS_G64, o->index);
	}
	return s;
}

static unsigned expect(const struct fay_insn *insn, struct shown out[VECTOR_OPERANDS])
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	unsigned general = insn->width == 64 ? CLASS_G64 : CLASS_G32, count = 0;
	unsigned full = vector_class(insn->vector),
		 source = row->memory == VMEMORY_VL ? full : CLASS_XMM, result = full;
	bool immediate = row->shape == VSHAPE_RMI || row->shape == VSHAPE_RVMI ||
			 row->shape == VSHAPE_MRI || row->shape == VSHAPE_VMI ||
			 row->shape == VSHAPE_XVGI || row->shape == VSHAPE_GXI ||
			 row->shape == VSHAPE_GRMI;

	if (row->shape == VSHAPE_NO)
		return 0;
	if (row->flags & VFLAG_NARROW || row->shape == VSHAPE_MRI)
		result = CLASS_XMM;
	if (row->shape == VSHAPE_MRI)
		source = full;
	out[count++] =
		from_operand(insn, &insn->dst, insn->dst.kind == OPERAND_REG ? general : result);
	if (insn->vex && insn->src2.kind == OPERAND_VEC)
		out[count++] = from_operand(insn, &insn->src2, full);
	if (row->shape != VSHAPE_VMI || insn->vex)
		out[count++] =
			from_operand(insn, &insn->src,
				     insn->src.kind != OPERAND_REG                  ? source
				     : row->shape == VSHAPE_GG && insn->access == 1 ? CLASS_G8
										    : general);
	if (row->shape == VSHAPE_RVMK)
		out[count++] = (struct shown){ .kind = OPERAND_REG,
					       .reg = code(insn->vex ? full : CLASS_XMM,
							   insn->vex ? insn->imm : 0) };
	if (immediate)
		out[count++] = (struct shown){ .kind = OPERAND_IMM, .value = (int64_t)insn->imm };
	return count;
}

/* ---- Zydis ---- */

static uint16_t zydis_register(ZydisRegister reg)
{
	static const struct {
		ZydisRegister first;
		uint8_t class;
	} classes[] = { { ZYDIS_REGISTER_EAX, CLASS_G32 },
			{ ZYDIS_REGISTER_RAX, CLASS_G64 },
			{ ZYDIS_REGISTER_XMM0, CLASS_XMM },
			{ ZYDIS_REGISTER_YMM0, CLASS_YMM } };

	if (reg == ZYDIS_REGISTER_NONE)
		return 0;
	if (reg == ZYDIS_REGISTER_RIP)
		return code(CLASS_RIP, 0);
	if (reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_BL)
		return code(CLASS_G8, reg - ZYDIS_REGISTER_AL);
	if (reg >= ZYDIS_REGISTER_SPL && reg < ZYDIS_REGISTER_SPL + 12)
		return code(CLASS_G8, 4 + reg - ZYDIS_REGISTER_SPL);
	for (unsigned i = 0; i < 4; i++)
		if (reg >= classes[i].first && reg < classes[i].first + 16)
			return code(classes[i].class, reg - classes[i].first);
	return code(CLASS_OTHER, 0);
}

static struct shown from_zydis(const ZydisDecodedOperand *o, uint64_t next)
{
	struct shown s = { 0 };

	switch (o->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		s.kind = OPERAND_REG;
		s.reg = zydis_register(o->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		s.kind = OPERAND_IMM;
		s.value = (int64_t)o->imm.value.u & 0xff;
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		s.kind = OPERAND_MEM;
		s.base = zydis_register(o->mem.base);
		s.index = zydis_register(o->mem.index);
		s.scale = o->mem.scale;
		s.bytes = o->size / 8;
		s.value = s.base == code(CLASS_RIP, 0)
				  ? (int64_t)(next + (uint64_t)o->mem.disp.value)
				  : o->mem.disp.value;
		break;
	default: break;
	}
	return s;
}

/* ---- Capstone ---- */

static uint16_t capstone_register(unsigned reg)
{
	static const uint16_t low32[] = { X86_REG_EAX, X86_REG_ECX, X86_REG_EDX, X86_REG_EBX,
					  X86_REG_ESP, X86_REG_EBP, X86_REG_ESI, X86_REG_EDI };
	static const uint16_t low64[] = { X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX,
					  X86_REG_RSP, X86_REG_RBP, X86_REG_RSI, X86_REG_RDI };

	static const uint16_t low8[] = { X86_REG_AL,  X86_REG_CL,  X86_REG_DL,  X86_REG_BL,
					 X86_REG_SPL, X86_REG_BPL, X86_REG_SIL, X86_REG_DIL };

	if (reg == X86_REG_INVALID || reg == X86_REG_RIZ || reg == X86_REG_EIZ)
		return 0;
	if (reg == X86_REG_RIP)
		return code(CLASS_RIP, 0);
	if (reg >= X86_REG_XMM0 && reg < X86_REG_XMM0 + 16)
		return code(CLASS_XMM, reg - X86_REG_XMM0);
	if (reg >= X86_REG_YMM0 && reg < X86_REG_YMM0 + 16)
		return code(CLASS_YMM, reg - X86_REG_YMM0);
	if (reg >= X86_REG_R8 && reg <= X86_REG_R15)
		return code(CLASS_G64, 8 + reg - X86_REG_R8);
	if (reg >= X86_REG_R8B && reg <= X86_REG_R15B)
		return code(CLASS_G8, 8 + reg - X86_REG_R8B);
	if (reg >= X86_REG_R8D && reg <= X86_REG_R15D)
		return code(CLASS_G32, 8 + reg - X86_REG_R8D);
	for (unsigned i = 0; i < 8; i++) {
		if (reg == low8[i])
			return code(CLASS_G8, i);
		if (reg == low32[i])
			return code(CLASS_G32, i);
		if (reg == low64[i])
			return code(CLASS_G64, i);
	}
	return code(CLASS_OTHER, 0);
}

static struct shown from_capstone(const cs_x86_op *o, uint64_t next)
{
	struct shown s = { 0 };

	switch (o->type) {
	case X86_OP_REG:
		s.kind = OPERAND_REG;
		s.reg = capstone_register(o->reg);
		break;
	case X86_OP_IMM:
		s.kind = OPERAND_IMM;
		s.value = o->imm & 0xff;
		break;
	case X86_OP_MEM:
		s.kind = OPERAND_MEM;
		s.base = o->mem.segment == X86_REG_INVALID ? capstone_register(o->mem.base)
							   : code(CLASS_OTHER, 0);
		s.index = capstone_register(o->mem.index);
		s.scale = (uint8_t)o->mem.scale;
		s.value = s.base == code(CLASS_RIP, 0) ? (int64_t)(next + (uint64_t)o->mem.disp)
						       : o->mem.disp;
		break;
	default: break;
	}
	return s;
}

/* ---- comparison ---- */

static bool same(const struct shown *a, const struct shown *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == OPERAND_REG)
		return a->reg == b->reg;
	if (a->kind == OPERAND_IMM)
		return a->value == b->value;
	return a->base == b->base && a->index == b->index && (!a->index || a->scale == b->scale) &&
	       a->value == b->value && (!a->bytes || !b->bytes || a->bytes == b->bytes);
}

static const char *compare(const struct shown *expected, unsigned count, const struct shown *found,
			   unsigned found_count)
{
	if (count != found_count)
		return "the number of operands";
	for (unsigned i = 0; i < count; i++)
		if (!same(&expected[i], &found[i]))
			return "the operands";
	return NULL;
}

static const char *zydis_objects(const ZydisDecoder *decoder, const uint8_t *bytes, size_t size,
				 const struct fay_insn *insn, const struct shown *expected,
				 unsigned count)
{
	ZydisDecodedInstruction z;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	struct shown found[ZYDIS_MAX_OPERAND_COUNT];
	unsigned found_count = 0;

	if (ZYAN_FAILED(ZydisDecoderDecodeFull(decoder, bytes, size, &z, operands)))
		return "that this is an instruction";
	if (z.length != insn->length)
		return "its length";
	if (z.mnemonic != names[insn->row].zydis[insn->vex])
		return "the operation";
	for (unsigned i = 0; i < z.operand_count_visible; i++)
		found[found_count++] = from_zydis(&operands[i], insn->address + z.length);
	if (fay_vector_row(insn)->shape == VSHAPE_RVMK && !insn->vex && found_count == 2)
		count = 2; /* xmm0 is implicit */
	return compare(expected, count, found, found_count);
}

/* cmpps and the like: the predicate that Capstone makes part of the operation, dropping the
 * operand; else -1. */
static int capstone_predicate(const struct fay_insn *insn)
{
	const struct fay_vector_row *row = fay_vector_row(insn);

	return row->map == VMAP_M0F && row->opcode == 0xc2 && insn->imm < (insn->vex ? 32 : 8)
		       ? (int)insn->imm
		       : -1;
}

static unsigned capstone_name(const struct fay_insn *insn)
{
	unsigned name = names[insn->row].capstone[insn->vex];

	if (capstone_predicate(insn) >= 0)
		return name + 1 + (unsigned)capstone_predicate(insn);
	if (insn->vex && insn->vector == 16 && insn->src.kind == OPERAND_MEM &&
	    fay_vector_row(insn)->flags & VFLAG_NARROW)
		return name == X86_INS_VCVTPD2DQ   ? X86_INS_VCVTPD2DQX
		       : name == X86_INS_VCVTPD2PS ? X86_INS_VCVTPD2PSX
						   : X86_INS_VCVTTPD2DQX;
	return name;
}

static const char *capstone_objects(csh handle, cs_insn *scratch, const uint8_t *bytes, size_t size,
				    const struct fay_insn *insn, const struct shown *expected,
				    unsigned count)
{
	const cs_x86 *x86 = &scratch->detail->x86;
	struct shown found[8];
	uint64_t address = insn->address;
	unsigned found_count = 0;

	if (!cs_disasm_iter(handle, &bytes, &size, &address, scratch))
		return "that this is an instruction";
	if (scratch->size != insn->length)
		return "its length";
	if (scratch->id != capstone_name(insn))
		return "the operation";
	for (unsigned i = 0; i < x86->op_count && i < 8; i++)
		found[found_count++] =
			from_capstone(&x86->operands[i], insn->address + insn->length);
	if (capstone_predicate(insn) >= 0)
		count--;
	if (fay_vector_row(insn)->shape == VSHAPE_RVMK && !insn->vex && found_count == 2)
		count = 2;
	return compare(expected, count, found, found_count);
}

struct fay_refusal fay_agree_vector(const ZydisDecoder *zydis, csh capstone, cs_insn *scratch,
				    struct fay_arena *arena, const uint8_t *bytes, size_t size,
				    const struct fay_insn *insn)
{
	struct shown expected[VECTOR_OPERANDS + 1];
	unsigned count = expect(insn, expected);
	const char *reader = "Zydis",
		   *what = zydis_objects(zydis, bytes, size, insn, expected, count);
	char name[24];

	if (!what) {
		reader = "Capstone";
		what = capstone_objects(capstone, scratch, bytes, size, insn, expected, count);
	}
	if (!what)
		return (struct fay_refusal){ .rule = FAY_RULE_NONE };
	return fay_refuse(arena, FAY_RULE_DEC_DISAGREE, insn->address,
			  "%s disagrees about %s (read here as %s, %u bytes)", reader, what,
			  fay_vector_name(insn, name), insn->length);
}
