/* SPDX-License-Identifier: MIT */
/*
 * The verifier's normalised instruction: what decode.c makes of bytes, and what the exact semantics
 * (semantics*.c) and the prover's abstract transfer functions read.
 *
 * One operation has one meaning for every operand width; the encoding's quirks (implicit registers,
 * immediates' sign extension, accumulator forms) are gone: immediates are already sign-extended to
 * 64 bits, implicit operands are explicit.
 *
 * Writes of a 32-bit register zero bits 63..32; writes of 8 and 16 bits keep the rest (Intel SDM
 * vol. 1, 3.4.1.1). High-byte registers (ah ch dh bh) are operands of their own kind, so that
 * whoever does not know them cannot take them for low bytes.
 */
#ifndef FAY_VERIFIER_INSN_H
#define FAY_VERIFIER_INSN_H

#include <stdbool.h>
#include <stdint.h>

/* One row an operation: ops.def says what each means. */
enum fay_op {
#define OP(ident, ...) OP_##ident,
#include "ops.def"
#undef OP
	OP_COUNT
};

/* Condition codes in encoding order: jo jno jb jae je jne jbe ja js jns jp jnp jl jge jle jg. */
enum fay_cc {
	CC_O,
	CC_NO,
	CC_B,
	CC_AE,
	CC_E,
	CC_NE,
	CC_BE,
	CC_A,
	CC_S,
	CC_NS,
	CC_P,
	CC_NP,
	CC_L,
	CC_GE,
	CC_LE,
	CC_G
};

#define FAY_NO_REG 0xff

/* Kinds of operands. HIGH: ah, ch, dh, bh. */
enum { OPERAND_NONE, OPERAND_REG, OPERAND_IMM, OPERAND_MEM, OPERAND_VEC, OPERAND_HIGH };

struct fay_operand {
	uint8_t kind; /* OPERAND_... */
	/* REG: enum fay_gpr. VEC: 0..15. HIGH: bits 15..8 of rax, rcx, rdx, rbx (0..3) */
	uint8_t reg;
	uint8_t base;  /* MEM: enum fay_gpr or FAY_NO_REG */
	uint8_t index; /* MEM: enum fay_gpr (never rsp) or FAY_NO_REG */
	uint8_t scale; /* MEM: 1, 2, 4, 8 */
	/* MEM: rip-relative; `disp` is then the absolute virtual address in the image, base and
	 * index are none */
	bool rip;
	int64_t disp; /* MEM: displacement, or the address if rip */
	int64_t imm;  /* IMM: sign-extended */
};

struct fay_insn {
	uint64_t address;  /* virtual address in the image */
	uint8_t length;    /* bytes, 1..15 */
	uint8_t op;        /* enum fay_op */
	uint8_t width;     /* operand width in bits: 8, 16, 32, 64 */
	uint8_t src_width; /* MOVZX, MOVSX: of the source; else = width */
	uint8_t cc;        /* enum fay_cc */
	bool locked;       /* lock prefix: memory destination */
	/* src2: IMUL the second factor, SHLD and SHRD the count; VEX forms: ops.def */
	struct fay_operand dst, src, src2;
	uint16_t row; /* VECTOR: index into fay_vector_rows */
	/* VECTOR: vector length in bytes, 16 or 32; a general register operand has `width` */
	uint8_t vector;
	/* VECTOR: bytes of the memory operand, or of src that count in its register form */
	uint8_t access;
	uint8_t imm; /* VECTOR: 8-bit immediate */
	bool vex;    /* VECTOR: VEX encoding: zeroes the destination above `vector` bytes */
	/* JMP, JCC, CALL: virtual address; CALL_SLOT: of the slot (CALL_REG: src) */
	uint64_t target;
};

/* Bits of a flags mask. */
enum { FLAG_CF = 1, FLAG_PF = 2, FLAG_ZF = 4, FLAG_SF = 8, FLAG_OF = 16, FLAG_ALL = 31 };

enum { ATTR_NONE = 0, ATTR_CC = 1, ATTR_COUNT = 2, ATTR_LOCKS = 4, ATTR_CONTROL = 8 };

/* Bytes of a result and those of its operands: ops.def. */
enum { FLOW_NONE, FLOW_BYTES, FLOW_AND, FLOW_UP };

/* A row of ops.def. */
struct fay_op_info {
	const char *name;
	/* by the op itself (ADC, SBB); condition codes: see fay_cc_flags() */
	uint8_t flags_read;
	uint8_t flags_written;   /* defined result */
	uint8_t flags_undefined; /* left undefined */
	uint8_t attributes;      /* ATTR_* */
	uint32_t features;       /* enum fay_cpu_feature that it needs */
	uint8_t flow;            /* FLOW_* */
	bool dst_read, dst_written, src_read, src_written;
	const char *implicit, *meaning;
};
extern const struct fay_op_info fay_op_table[OP_COUNT];
uint8_t fay_cc_flags(enum fay_cc cc);
/* FLOW_* of an instruction: that of its operation, if its result is a register of 32 or 64 bits. */
unsigned fay_flow(const struct fay_insn *insn);

#endif
