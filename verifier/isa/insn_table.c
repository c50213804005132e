/* SPDX-License-Identifier: MIT */
/* The table of operations: ops.def spelt out. */
#include "fay/facts.h"
#include "insn.h"

enum { ACCESS_NO, ACCESS_READ, ACCESS_WRITE, ACCESS_BOTH };

/* Attributes as ops.def writes them. */
#define CPU(feature) (FAY_CPU_##feature << 8)
enum { NONE = ATTR_NONE, CC = ATTR_CC, COUNT = ATTR_COUNT, LOCKS = ATTR_LOCKS };
enum { CONTROL = ATTR_CONTROL };

const struct fay_op_info fay_op_table[OP_COUNT] = {
#define OP(ident, name, dst, src, reads, writes, undefined, attributes, transfer, semantics, step, \
	   flow, implicit, meaning)                                                                \
	[OP_##ident] = { name,                                                                     \
			 reads,                                                                    \
			 writes,                                                                   \
			 undefined,                                                                \
			 (uint8_t)(attributes),                                                    \
			 (uint32_t)(attributes) >> 8,                                              \
			 FLOW_##flow,                                                              \
			 (ACCESS_##dst & ACCESS_READ) != 0,                                        \
			 (ACCESS_##dst & ACCESS_WRITE) != 0,                                       \
			 (ACCESS_##src & ACCESS_READ) != 0,                                        \
			 (ACCESS_##src & ACCESS_WRITE) != 0,                                       \
			 implicit,                                                                 \
			 meaning },
#include "ops.def"
#undef OP
};

uint8_t fay_cc_flags(enum fay_cc cc)
{
	static const uint8_t flags[8] = {
		FLAG_OF, FLAG_CF, FLAG_ZF,           FLAG_CF | FLAG_ZF,
		FLAG_SF, FLAG_PF, FLAG_SF | FLAG_OF, FLAG_ZF | FLAG_SF | FLAG_OF,
	};
	return flags[(unsigned)cc >> 1 & 7];
}

unsigned fay_flow(const struct fay_insn *insn)
{
	if (insn->dst.kind != OPERAND_REG || insn->dst.reg == FAY_RSP || insn->width < 32 ||
	    (insn->op == OP_SHL && insn->src.kind != OPERAND_IMM))
		return FLOW_NONE;
	return fay_op_table[insn->op].flow;
}
