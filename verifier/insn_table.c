/* SPDX-License-Identifier: MIT */
/*
 * Static facts of each operation: which flags it reads, defines and leaves undefined, which operands it reads and writes.
 *
 * Source: Intel SDM volume 2, "Flags Affected" of each instruction; where it says "undefined" the flag is in flags_undefined even if every CPU
 * at hand computes something. Shifts and rotates are special: with a masked count of 0 no flag changes, and OF is defined for a count of 1 only;
 * the row states the general case (any flag may change, OF undefined) and exec.c has the exact one. AF is not modelled: no allowed instruction reads it.
 */
#include "insn.h"

#define ARITH FLAG_ALL
#define LOGIC FLAG_ALL

const struct fay_op_info fay_op_table[OP_COUNT] = {
	/*                  name        read     written                                undefined           dst_read dst_written src_read */
	[OP_NOP]       = { "nop",       0,       0,                                     0,                  false, false, false },
	[OP_MOV]       = { "mov",       0,       0,                                     0,                  false, true,  true },
	[OP_MOVZX]     = { "movzx",     0,       0,                                     0,                  false, true,  true },
	[OP_MOVSX]     = { "movsx",     0,       0,                                     0,                  false, true,  true },
	[OP_LEA]       = { "lea",       0,       0,                                     0,                  false, true,  false },
	[OP_ADD]       = { "add",       0,       ARITH,                                 0,                  true,  true,  true },
	[OP_SUB]       = { "sub",       0,       ARITH,                                 0,                  true,  true,  true },
	[OP_AND]       = { "and",       0,       LOGIC,                                 0,                  true,  true,  true },
	[OP_OR]        = { "or",        0,       LOGIC,                                 0,                  true,  true,  true },
	[OP_XOR]       = { "xor",       0,       LOGIC,                                 0,                  true,  true,  true },
	[OP_ADC]       = { "adc",       FLAG_CF, ARITH,                                 0,                  true,  true,  true },
	[OP_SBB]       = { "sbb",       FLAG_CF, ARITH,                                 0,                  true,  true,  true },
	[OP_CMP]       = { "cmp",       0,       ARITH,                                 0,                  true,  false, true },
	[OP_TEST]      = { "test",      0,       LOGIC,                                 0,                  true,  false, true },
	[OP_NOT]       = { "not",       0,       0,                                     0,                  true,  true,  false },
	[OP_NEG]       = { "neg",       0,       ARITH,                                 0,                  true,  true,  false },
	[OP_INC]       = { "inc",       0,       ARITH & ~FLAG_CF,                      0,                  true,  true,  false },
	[OP_DEC]       = { "dec",       0,       ARITH & ~FLAG_CF,                      0,                  true,  true,  false },
	[OP_SHL]       = { "shl",       0,       FLAG_CF | FLAG_PF | FLAG_ZF | FLAG_SF, FLAG_OF,            true,  true,  true },
	[OP_SHR]       = { "shr",       0,       FLAG_CF | FLAG_PF | FLAG_ZF | FLAG_SF, FLAG_OF,            true,  true,  true },
	[OP_SAR]       = { "sar",       0,       FLAG_CF | FLAG_PF | FLAG_ZF | FLAG_SF, FLAG_OF,            true,  true,  true },
	[OP_ROL]       = { "rol",       0,       FLAG_CF,                               FLAG_OF,            true,  true,  true },
	[OP_ROR]       = { "ror",       0,       FLAG_CF,                               FLAG_OF,            true,  true,  true },
	[OP_SHLD]      = { "shld",      0,       FLAG_CF | FLAG_PF | FLAG_ZF | FLAG_SF, FLAG_OF,            true,  true,  true },
	[OP_SHRD]      = { "shrd",      0,       FLAG_CF | FLAG_PF | FLAG_ZF | FLAG_SF, FLAG_OF,            true,  true,  true },
	[OP_IMUL]      = { "imul",      0,       FLAG_CF | FLAG_OF,                     FLAG_SF | FLAG_ZF | FLAG_PF, false, true, true },
	[OP_MUL1]      = { "mul",       0,       FLAG_CF | FLAG_OF,                     FLAG_SF | FLAG_ZF | FLAG_PF, false, false, true },
	[OP_IMUL1]     = { "imul",      0,       FLAG_CF | FLAG_OF,                     FLAG_SF | FLAG_ZF | FLAG_PF, false, false, true },
	[OP_DIV]       = { "div",       0,       0,                                     FLAG_ALL,           false, false, true },
	[OP_IDIV]      = { "idiv",      0,       0,                                     FLAG_ALL,           false, false, true },
	[OP_CQO]       = { "cqo",       0,       0,                                     0,                  false, false, false },
	[OP_BT]        = { "bt",        0,       FLAG_CF,                               FLAG_OF | FLAG_SF | FLAG_PF, true, false, true },
	[OP_BSWAP]     = { "bswap",     0,       0,                                     0,                  true,  true,  false },
	[OP_BSF]       = { "bsf",       0,       FLAG_ZF,                               FLAG_ALL & ~FLAG_ZF, true, true,  true },
	[OP_BSR]       = { "bsr",       0,       FLAG_ZF,                               FLAG_ALL & ~FLAG_ZF, true, true,  true },
	[OP_TZCNT]     = { "tzcnt",     0,       FLAG_CF | FLAG_ZF,                     FLAG_OF | FLAG_SF | FLAG_PF, false, true, true },
	[OP_LZCNT]     = { "lzcnt",     0,       FLAG_CF | FLAG_ZF,                     FLAG_OF | FLAG_SF | FLAG_PF, false, true, true },
	[OP_POPCNT]    = { "popcnt",    0,       FLAG_ALL,                              0,                  false, true,  true },
	[OP_XCHG]      = { "xchg",      0,       0,                                     0,                  true,  true,  true },
	[OP_XADD]      = { "xadd",      0,       ARITH,                                 0,                  true,  true,  true },
	[OP_CMPXCHG]   = { "cmpxchg",   0,       ARITH,                                 0,                  true,  true,  true },
	[OP_CMOV]      = { "cmov",      0,       0,                                     0,                  true,  true,  true },
	[OP_SETCC]     = { "set",       0,       0,                                     0,                  false, true,  false },
	[OP_PUSH]      = { "push",      0,       0,                                     0,                  false, false, true },
	[OP_POP]       = { "pop",       0,       0,                                     0,                  false, true,  false },
	[OP_JMP]       = { "jmp",       0,       0,                                     0,                  false, false, false },
	[OP_JCC]       = { "j",         0,       0,                                     0,                  false, false, false },
	[OP_JMP_TABLE] = { "jmp",       0,       0,                                     0,                  true,  false, false },
	[OP_CALL]      = { "call",      0,       0,                                     0,                  false, false, false },
	[OP_CALL_SLOT] = { "call",      0,       0,                                     0,                  false, false, false },
	[OP_RET]       = { "ret",       0,       0,                                     0,                  false, false, false },
	[OP_LFENCE]    = { "lfence",    0,       0,                                     0,                  false, false, false },
	[OP_RDTSC]     = { "rdtsc",     0,       0,                                     0,                  false, false, false },
};

uint8_t fay_cc_flags(enum fay_cc cc)
{
	static const uint8_t flags[8] = {
		FLAG_OF, FLAG_CF, FLAG_ZF, FLAG_CF | FLAG_ZF, FLAG_SF, FLAG_PF, FLAG_SF | FLAG_OF, FLAG_ZF | FLAG_SF | FLAG_OF,
	};
	return flags[(unsigned)cc >> 1 & 7];
}
