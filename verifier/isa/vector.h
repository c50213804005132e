/* SPDX-License-Identifier: MIT */
/*
 * The vector instructions' table in C: rows of opcodes_vector.def, and what the parts of the
 * verifier ask of them.
 *
 * A vector instruction is normalised to op OP_VECTOR and the row's index. dst, src and src2 are
 * operands as in insn.h with one more kind, OPERAND_VEC; src is always the r/m operand of loads and
 * arithmetic, dst the one of stores; src2 is the first source of three-operand forms: vvvv in VEX,
 * dst itself in legacy encoding.
 */
#ifndef FAY_VERIFIER_VECTOR_H
#define FAY_VERIFIER_VECTOR_H

#include "decode.h"

enum fay_vector_map { VMAP_M0F, VMAP_M38, VMAP_M3A, VMAP_COUNT };
enum fay_vector_pp { VPP_PNP, VPP_P66, VPP_PF3, VPP_PF2, VPP_COUNT };
enum fay_vector_mod { VMOD_EITHER, VMOD_REG, VMOD_MEM };
enum fay_vector_shape {
#define SHAPE(name, ...) VSHAPE_##name,
#include "opcodes_forms.def"
};
/* How "written" moves: opcodes_vector.def. Of L, IL and IH an element has 1 << VFLOW_... % 8 bytes;
 * DUP and HIGH are what a shuffle's immediate would be. */
enum { VFLOW_L1, VFLOW_L2, VFLOW_L4, VFLOW_L8, VFLOW_LANE };
enum { VFLOW_IL1 = 8, VFLOW_IL2, VFLOW_IL4, VFLOW_IL8, VFLOW_IH1 = 16, VFLOW_IH2, VFLOW_IH4 };
enum { VFLOW_IH8 = VFLOW_IH4 + 1, VFLOW_ALL = 24, VFLOW_S4, VFLOW_S8, VFLOW_U4, VFLOW_U8 };
enum { VFLOW_U4TO8 = VFLOW_U8 + 1, VFLOW_U8TO4, VFLOW_LOW, VFLOW_INTO, VFLOW_OUT, VFLOW_COUNT };
enum { VFLOW_HL = VFLOW_COUNT + 1, VFLOW_SHUF, VFLOW_SHUF2 };
enum { VFLOW_DDUP = 0x44, VFLOW_SLDUP = 0xa0, VFLOW_SHDUP = 0xf5, VFLOW_HIGH = 0xee };
enum fay_vector_w { VW_W0, VW_W1, VW_GW };
/* Flags of a row: opcodes_vector.def. */
enum { VFLAG_FP = 1, VFLAG_ALIGN = 2, VFLAG_LOOSE = 4, VFLAG_ZERO = 8, VFLAG_ONES = 16 };
enum { VFLAG_FLAGS = 32, VFLAG_NARROW = 64 };
enum { VMEMORY_VL = 0x80, VMEMORY_HALF, VMEMORY_QUARTER, VMEMORY_EIGHTH };
enum { VENCODING_LEGACY = 1, VENCODING_VEX = 2 };
enum { VEXT_0, VEXT_1, VEXT_2, VEXT_3, VEXT_4, VEXT_5, VEXT_6, VEXT_7, VEXT_ANY = 0xff };
/* Instruction sets in the order of fay_vector_features(). */
enum { VSET_NONE, VSET_SSE, VSET_SSE2, VSET_SSE3, VSET_SSSE3, VSET_SSE41, VSET_SSE42 };
enum { VSET_AVX = VSET_SSE42 + 1, VSET_AVX2, VSET_FMA3 };

struct fay_vector_row {
	/* of the legacy form; of the VEX form without it, where there is no legacy form */
	const char *name;
	uint8_t map, pp, opcode;
	uint8_t ext; /* 0..7, or VEXT_ANY */
	uint8_t mod, shape, flow, memory;
	uint8_t set, wide; /* VSET_...: of the 128-bit form, of the 256-bit form */
	uint8_t w, flags, encodings;
};
extern const struct fay_vector_row fay_vector_rows[];
extern const unsigned fay_vector_row_count;

static inline const struct fay_vector_row *fay_vector_row(const struct fay_insn *insn)
{
	return &fay_vector_rows[insn->row];
}
/* enum fay_cpu_feature of an instruction; 0 if every x86-64 has it. */
uint32_t fay_vector_features(const struct fay_insn *insn);
/* "addps", "vaddps" into a buffer of at least 24 bytes; returns it. */
const char *fay_vector_name(const struct fay_insn *insn, char *name);

/* Of the operands, a bit a byte: which were written. third: a blend's mask, what an FMA's dst was.
 * An operand that the instruction does not have is all ones. */
struct fay_vector_bytes {
	uint32_t src, first, third;
};
/* The bytes of the result, `length` of them, that are computed from written ones alone. */
uint32_t fay_vector_flow(const struct fay_insn *insn, const struct fay_vector_bytes *of,
			 unsigned length);
static inline uint32_t fay_vector_low(unsigned bytes)
{
	return bytes >= 32 ? UINT32_MAX : (1u << bytes) - 1;
}

#endif
