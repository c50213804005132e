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
enum fay_vector_flow {
	VFLOW_L1,
	VFLOW_L2,
	VFLOW_L4,
	VFLOW_L8,
	VFLOW_LANE,
	VFLOW_ALL,
	VFLOW_S4,
	VFLOW_S8,
	VFLOW_U4,
	VFLOW_U8,
	VFLOW_U4TO8,
	VFLOW_U8TO4,
	VFLOW_LOW,
	VFLOW_INTO,
	VFLOW_COUNT,
	VFLOW_PERM,
};
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

/* Where byte `at` of the result of a PERM row comes from: a byte number of src, of src2 (plus
 * FAY_FROM_FIRST), or FAY_FROM_NOTHING (zero). */
enum { FAY_FROM_FIRST = 0x40, FAY_FROM_NOTHING = 0x80 };
unsigned fay_vector_source(const struct fay_insn *insn, unsigned at);

#endif
