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

/* One 128-bit lane of shuffles by immediate: byte `at` of the lane. */
static unsigned lane_source(const struct fay_vector_row *row, unsigned imm, unsigned at)
{
	unsigned k, element;

	switch (row->pp << 8 | row->opcode) {
	case VPP_PNP << 8 | 0x12: /* movhlps */ return at < 8 ? at + 8 : FAY_FROM_FIRST + at;
	case VPP_PNP << 8 | 0x16:
	case VPP_P66 << 8 | 0x16: /* movlhps, movhps, movhpd */
		return at < 8 ? FAY_FROM_FIRST + at : at - 8;
	case VPP_PNP << 8 | 0x17:
	case VPP_P66 << 8 | 0x17: /* movhps, movhpd to memory */ return at + 8;
	case VPP_PF2 << 8 | 0x12: /* movddup */ return at % 8;
	case VPP_PF3 << 8 | 0x12: /* movsldup */ return (at & ~7u) + at % 4;
	case VPP_PF3 << 8 | 0x16: /* movshdup */ return (at & ~7u) + 4 + at % 4;
	case VPP_P66 << 8 | 0x70: /* pshufd */ return (imm >> 2 * (at / 4) & 3) * 4 + at % 4;
	case VPP_PF3 << 8 | 0x70: /* pshufhw */
		return at < 8 ? at : 8 + (imm >> 2 * ((at - 8) / 2) & 3) * 2 + at % 2;
	case VPP_PF2 << 8 | 0x70: /* pshuflw */
		return at >= 8 ? at : (imm >> 2 * (at / 2) & 3) * 2 + at % 2;
	case VPP_PNP << 8 | 0xc6: /* shufps */
		return (imm >> 2 * (at / 4) & 3) * 4 + at % 4 + (at < 8 ? FAY_FROM_FIRST : 0);
	case VPP_P66 << 8 | 0x73: /* psrldq, pslldq */
		k = row->ext == 3 ? at + imm : at - imm;
		return imm < 16 && k < 16 ? k : FAY_FROM_NOTHING;
	case VPP_P66 << 8 | 0xc5: /* pextrw */ return imm % 8 * 2 + at;
	case VPP_PNP << 8 | 0x14:
	case VPP_PNP << 8 | 0x15: element = 4; break;
	case VPP_P66 << 8 | 0x60:
	case VPP_P66 << 8 | 0x68: element = 1; break;
	case VPP_P66 << 8 | 0x61:
	case VPP_P66 << 8 | 0x69: element = 2; break;
	case VPP_P66 << 8 | 0x62:
	case VPP_P66 << 8 | 0x6a: element = 4; break;
	default: /* punpcklqdq, punpckhqdq, unpcklpd, unpckhpd */ element = 8;
	}
	/* Interleaving: opcodes 15 and 68..6a, 6d take the upper halves. */
	k = (row->opcode == 0x15 || (row->opcode >= 0x68 && row->opcode <= 0x6a) ||
			     row->opcode == 0x6d
		     ? 8
		     : 0) +
	    at / (2 * element) * element + at % element;
	return at / element & 1 ? k : FAY_FROM_FIRST + k;
}

unsigned fay_vector_source(const struct fay_insn *insn, unsigned at)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	unsigned imm = insn->imm, lane = at & 16, half = at / 16, k, control;

	if (row->map == VMAP_M0F) {
		k = lane_source(row, imm, at % 16);
		return k == FAY_FROM_NOTHING ? k : k + lane;
	}
	switch (row->opcode) {
	case 0x04: /* vpermilps */ return lane + (imm >> 2 * (at % 16 / 4) & 3) * 4 + at % 4;
	case 0x0f: /* palignr */
		k = at % 16 + imm;
		return k < 16   ? lane + k
		       : k < 32 ? FAY_FROM_FIRST + lane + k - 16
				: FAY_FROM_NOTHING;
	case 0x00:
	case 0x01: /* vpermq, vpermpd */ return (imm >> 2 * (at / 8) & 3) * 8 + at % 8;
	case 0x18:
	case 0x38: /* vinsertf128, vinserti128 */
		return half == (imm & 1) ? at % 16 : FAY_FROM_FIRST + at;
	case 0x19:
	case 0x39: /* vextractf128, vextracti128 */ return (imm & 1) * 16 + at;
	case 0x06:
	case 0x46: /* vperm2f128, vperm2i128 */
		control = imm >> 4 * half;
		if (control & 8)
			return FAY_FROM_NOTHING;
		return (control & 2 ? 0 : FAY_FROM_FIRST) + (control & 1) * 16 + at % 16;
	default: /* pextrb, pextrw, pextrd, pextrq, extractps */
		return (imm * row->memory + at) % 16;
	}
}
