/* SPDX-License-Identifier: MIT */
/* The table of operations: ops.def spelt out. */
#include "fay/verify.h"
#include "insn.h"
#include "semantics.h"

enum { ACCESS_NO, ACCESS_READ, ACCESS_WRITE, ACCESS_BOTH };

/* Attributes as ops.def writes them. */
#define CPU(feature) (FAY_CPU_##feature << 8)
enum {
	NONE = ATTR_NONE,
	CC = ATTR_CC,
	COUNT = ATTR_COUNT,
	LOCKS = ATTR_LOCKS,
	CONTROL = ATTR_CONTROL
};

const struct fay_op_info fay_op_table[OP_COUNT] = {
#define OP(ident, name_, dst, src, reads, writes, undefined, attributes_, transfer, semantics_,    \
	   implicit_, meaning_)                                                                    \
	[OP_##ident] = { .name = name_,                                                            \
			 .flags_read = reads,                                                      \
			 .flags_written = writes,                                                  \
			 .flags_undefined = undefined,                                             \
			 .attributes = (uint8_t)(attributes_),                                     \
			 .features = (uint32_t)(attributes_) >> 8,                                 \
			 .dst_read = ACCESS_##dst & ACCESS_READ,                                   \
			 .dst_written = (ACCESS_##dst & ACCESS_WRITE) != 0,                        \
			 .src_read = ACCESS_##src & ACCESS_READ,                                   \
			 .src_written = (ACCESS_##src & ACCESS_WRITE) != 0,                        \
			 .semantics = fay_semantics_##semantics_,                                  \
			 .implicit = implicit_,                                                    \
			 .meaning = meaning_ },
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
