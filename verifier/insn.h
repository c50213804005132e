/* SPDX-License-Identifier: MIT */
/*
 * The verifier's normalised instruction: what decode.c makes of bytes and what the three interpreters read: abstract (transfer.c),
 * symbolic (smt.c) and concrete (exec.c).
 *
 * One operation has one meaning for every operand width; the encoding's quirks (implicit registers, immediates' sign extension, accumulator forms)
 * are gone: immediates are already sign-extended to 64 bits, implicit operands are explicit.
 *
 * Writes of a 32-bit register zero bits 63..32; writes of 8 and 16 bits keep the rest (Intel SDM vol. 1, 3.4.1.1).
 * High-byte registers (ah ch dh bh) are not in the subset.
 */
#ifndef FAY_VERIFIER_INSN_H
#define FAY_VERIFIER_INSN_H

#include <stdbool.h>
#include <stdint.h>

enum fay_op {
	OP_NOP,
	OP_MOV,    /* dst = src; no flags */
	OP_MOVZX,  /* dst(width) = zero-extended src(src_width) */
	OP_MOVSX,  /* dst(width) = sign-extended src(src_width); cdqe/cwde/cbw too */
	OP_LEA,    /* dst = address of src.mem truncated to width; no access */
	OP_ADD, OP_SUB, OP_AND, OP_OR, OP_XOR, /* dst = dst op src */
	OP_ADC, OP_SBB,
	OP_CMP, OP_TEST,        /* flags of dst - src, dst & src; nothing written */
	OP_NOT, OP_NEG, OP_INC, OP_DEC,
	OP_SHL, OP_SHR, OP_SAR, OP_ROL, OP_ROR, /* dst by src (immediate, or cl as 8-bit register operand); count masked by 31 or 63 */
	OP_SHLD, OP_SHRD,       /* dst, src, count in `imm` (immediate form only) */
	OP_IMUL,   /* dst = src * src2, truncated (two-operand form: src2 = dst) */
	OP_MUL1, OP_IMUL1,      /* rdx:rax = rax * src (unsigned, signed), widths 32 and 64 */
	OP_DIV, OP_IDIV,        /* rax, rdx = rdx:rax / src, widths 32 and 64 */
	OP_CQO,    /* rdx = sign of rax (width 64: cqo, 32: cdq) */
	OP_BT,     /* CF = bit src of register dst; register or immediate index, masked by width - 1 */
	OP_BSWAP,  /* widths 32 and 64 */
	OP_BSF, OP_BSR, OP_TZCNT, OP_LZCNT, OP_POPCNT,
	OP_XCHG,   /* register with register only */
	OP_XADD,   /* lock xadd mem, reg or plain: dst mem, src reg */
	OP_CMPXCHG,/* dst mem, src reg, rax implicit */
	OP_CMOV,   /* dst = cc ? src : dst; width 32 zero-extends either way */
	OP_SETCC,  /* dst (8 bits) = cc */
	OP_PUSH,   /* src: 64-bit register or immediate */
	OP_POP,    /* dst: 64-bit register */
	OP_JMP,    /* direct: target */
	OP_JCC,    /* direct: cc, target, else falls through */
	OP_JMP_TABLE, /* indirect jump through register: dst (jump tables); proof needed */
	OP_CALL,   /* direct: target */
	OP_CALL_SLOT, /* call *disp(%rip): target is the slot's virtual address */
	OP_RET,
	OP_LFENCE,
	OP_RDTSC,  /* by policy; writes rax, rdx */
	OP_COUNT
};

/* Condition codes in encoding order: jo jno jb jae je jne jbe ja js jns jp jnp jl jge jle jg. */
enum fay_cc { CC_O, CC_NO, CC_B, CC_AE, CC_E, CC_NE, CC_BE, CC_A, CC_S, CC_NS, CC_P, CC_NP, CC_L, CC_GE, CC_LE, CC_G };

#define FAY_NO_REG 0xff

enum fay_operand_kind { OPERAND_NONE, OPERAND_REG, OPERAND_IMM, OPERAND_MEM };

struct fay_operand {
	uint8_t kind;  /* enum fay_operand_kind */
	uint8_t reg;   /* REG: enum fay_gpr */
	uint8_t base;  /* MEM: enum fay_gpr or FAY_NO_REG */
	uint8_t index; /* MEM: enum fay_gpr (never rsp) or FAY_NO_REG */
	uint8_t scale; /* MEM: 1, 2, 4, 8 */
	bool rip;      /* MEM: rip-relative; `disp` is then the absolute virtual address in the image, base and index are none */
	int64_t disp;  /* MEM: displacement, or the address if rip */
	int64_t imm;   /* IMM: sign-extended */
};

struct fay_insn {
	uint64_t address;  /* virtual address in the image */
	uint8_t length;    /* bytes, 1..15 */
	uint8_t op;        /* enum fay_op */
	uint8_t width;     /* operand width in bits: 8, 16, 32, 64 */
	uint8_t src_width; /* MOVZX, MOVSX: of the source; else = width */
	uint8_t cc;        /* enum fay_cc */
	bool locked;       /* lock prefix: memory destination */
	struct fay_operand dst, src, src2;
	uint64_t imm;      /* SHLD/SHRD count */
	uint64_t target;   /* JMP, JCC, CALL: virtual address; CALL_SLOT: of the slot */
};

/* Bits of a flags mask. */
enum { FLAG_CF = 1, FLAG_PF = 2, FLAG_ZF = 4, FLAG_SF = 8, FLAG_OF = 16, FLAG_ALL = 31 };

/* Static facts of an operation, one row per op in the table of insn_table.c. */
struct fay_op_info {
	const char *name;
	uint8_t flags_read;      /* by the op itself (ADC, SBB); condition codes: see fay_cc_flags() */
	uint8_t flags_written;   /* defined result */
	uint8_t flags_undefined; /* left undefined */
	bool dst_read, dst_written, src_read;
};
extern const struct fay_op_info fay_op_table[OP_COUNT];
uint8_t fay_cc_flags(enum fay_cc cc);

#endif
