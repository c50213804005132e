/* SPDX-License-Identifier: MIT */
/* What the two files of the allow-list decoder share: decode.c finds an opcode's row,
 * decode_operands.c reads what its form demands. */
#ifndef FAY_VERIFIER_DECODE_PARTS_H
#define FAY_VERIFIER_DECODE_PARTS_H

#include "decode.h"
#include "verifier/rules/rules.h"

enum form {
	FORM_NONE,
	FORM_RM_R, /* dst r/m, src reg */
	FORM_R_RM, /* dst reg, src r/m */
	FORM_R_RM8,
	FORM_R_RM16,
	FORM_R_RM32, /* the same with a narrower source */
	FORM_RM_IZ,  /* dst r/m, immediate of the operand's width, at most 32 bits */
	FORM_RM_IB,  /* dst r/m, 8-bit immediate */
	FORM_A_IZ,   /* dst al/ax/eax/rax, immediate */
	FORM_RM,     /* dst r/m */
	FORM_RM_SRC, /* src r/m */
	FORM_RM_1,   /* dst r/m, src 1 */
	FORM_RM_CL,  /* dst r/m, src cl */
	FORM_RM_R_IB,
	FORM_RM_R_CL, /* dst r/m, src reg, src2 8-bit count or cl */
	FORM_R_RM_IZ,
	FORM_R_RM_IB, /* dst reg, src r/m, src2 immediate */
	FORM_O,       /* dst: register in the opcode's low bits */
	FORM_O_SRC,   /* src: likewise */
	FORM_O_IV,    /* dst: likewise, src immediate of the operand's full width */
	FORM_A_O,     /* dst rax, src register in the opcode */
	FORM_IB,
	FORM_IZ, /* src immediate */
	FORM_J8,
	FORM_J32,
	FORM_CALL32,   /* the same, and one 67 may stand before it */
	FORM_EXTEND_A, /* cbw cwde cdqe */
	FORM_SLOT,     /* call *disp(%rip), call *%reg */
	FORM_RM_JUMP,  /* jmp *reg */
	FORM_MOVS,     /* dst [rdi], src [rsi] */
	FORM_STOS,     /* dst [rdi], src rax */
	FORM_FENCE,
	FORM_VEX_R_V_RM,  /* dst reg, src2 vvvv, src r/m */
	FORM_VEX_V_RM,    /* dst vvvv, src r/m */
	FORM_VEX_R_RM_IB, /* dst reg, src r/m, src2 immediate */
};

enum width { WIDTH_B, WIDTH_V, WIDTH_Y, WIDTH_Q, WIDTH_W, WIDTH_N };
enum mod { MOD_EITHER, MOD_REG, MOD_REGF, MOD_MEM };

struct row {
	uint8_t kind, op, form, width, mod;
	bool lock, extended; /* extended: the reg field is part of the opcode */
	uint8_t rule;        /* ROW_REFUSE: enum fay_rule */
	const char *why;
};

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };

struct reader {
	const uint8_t *bytes;
	size_t size, at;
	bool overrun;

	const struct row *row;
	uint8_t opcode, modrm, vvvv;
	uint8_t rex, rex_used;
	bool has_rex, needs_rex;
	unsigned count66, count67, count_f0, count_f2, count_f3, count_segment;

	enum fay_rule rule; /* first thing wrong */
	const char *why;
};

static inline void fail(struct reader *reader, enum fay_rule rule, const char *why)
{
	if (reader->rule != FAY_RULE_NONE)
		return;
	reader->rule = rule;
	reader->why = why;
}

/* decode.c: the next byte; 0 and `overrun` behind the end. */
uint8_t fay_reader_take8(struct reader *reader);
/* A little-endian signed value of 1, 2, 4 or 8 bytes. */
int64_t fay_reader_take_signed(struct reader *reader, unsigned size);

/* decode_operands.c: the operands, as the row's form places them. */
void fay_operands_read(struct reader *reader, struct fay_insn *insn);
/* What can be judged only with the operands at hand: which of memory and register, lock, REX bits
 * without effect. */
void fay_operands_check(struct reader *reader, const struct fay_insn *insn);

#endif
