/* SPDX-License-Identifier: MIT */
/* opcodes_vector.def as an array, and what can be read off a row without knowing any state. */
#include "vector.h"

/* Memory operands and flags as opcodes_vector.def writes them. */
enum { VL = VMEMORY_VL, HALF, QUARTER, EIGHTH };
enum { FP = VFLAG_FP, ALIGN = VFLAG_ALIGN, LOOSE = VFLAG_LOOSE, ZERO = VFLAG_ZERO };
enum { ONES = VFLAG_ONES, FLAGS = VFLAG_FLAGS, NARROW = VFLAG_NARROW };

#define VECTOR(encodings, name, map, pp, opcode, ext, mod, shape, flow, memory, set, wide, w,      \
	       flags)                                                                              \
	{                                                                                          \
		#name,       VMAP_##map,     VPP_##pp,     opcode,   VEXT_##ext,                   \
		VMOD_##mod,  VSHAPE_##shape, VFLOW_##flow, memory,   VSET_##set,                   \
		VSET_##wide, VW_##w,         flags,        encodings                               \
	},

const struct fay_vector_row fay_vector_rows[] = {
#include "opcodes_vector.def"
};
const unsigned fay_vector_row_count = sizeof(fay_vector_rows) / sizeof(*fay_vector_rows);

uint32_t fay_vector_features(const struct fay_insn *insn)
{
	static const uint32_t features[] = {
		[VSET_SSE3] = FAY_CPU_SSE3,
		[VSET_SSSE3] = FAY_CPU_SSSE3,
		[VSET_SSE41] = FAY_CPU_SSE41,
		[VSET_SSE42] = FAY_CPU_SSE42,
		[VSET_AVX] = FAY_CPU_AVX,
		[VSET_AVX2] = FAY_CPU_AVX | FAY_CPU_AVX2,
		[VSET_FMA3] = FAY_CPU_AVX | FAY_CPU_FMA,
	};
	const struct fay_vector_row *row = fay_vector_row(insn);

	if (!insn->vex)
		return features[row->set];
	if (insn->vector == 32)
		return features[row->wide];
	return row->encodings & VENCODING_LEGACY ? FAY_CPU_AVX : features[row->set] | FAY_CPU_AVX;
}
