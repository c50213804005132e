/* SPDX-License-Identifier: MIT */
/* What the files of instructions share: step.c, step_sum.c, step_bits.c, step_multiply.c. */
#ifndef FAY_CHECKER_STEP_H
#define FAY_CHECKER_STEP_H

#include "form.h"
#include "machine.h"

#define ALL_BUT_P (FLAG_ALL & ~FLAG_PF)

static const struct fay_operand rax = { .kind = OPERAND_REG, .reg = FAY_RAX },
				rdx = { .kind = OPERAND_REG, .reg = FAY_RDX },
				ah = { .kind = OPERAND_HIGH, .reg = FAY_RAX };

/* Any number of `bits` bits. */
static inline struct value unknown(struct machine *m, unsigned bits)
{
	return value_fresh(m, 0, POWER(bits) - 1, 64);
}

/* v becomes ~v. */
static inline void complement(struct machine *m, struct value *v, unsigned bits)
{
	struct value all = value_number(UINT64_MAX);

	value_add(m, &all, v, -1, bits, v);
}

static inline bool same_register(const struct fay_insn *insn)
{
	return insn->dst.kind == OPERAND_REG && insn->src.kind == OPERAND_REG &&
	       insn->dst.reg == insn->src.reg;
}

/* xor or sub of a register with itself, or of all ones: the result does not depend on it. */
static inline bool has_constant_result(const struct fay_insn *insn)
{
	return ((insn->op == OP_XOR || insn->op == OP_SUB) && same_register(insn)) ||
	       (insn->op == OP_OR && insn->dst.kind == OPERAND_REG &&
		insn->src.kind == OPERAND_IMM && insn->src.imm == -1);
}

/* Ones up to the highest that a number of at most `hi` can have. */
static inline wide ones(wide hi)
{
	if (hi >> 64)
		return UINT64_MAX;
	return hi ? UINT64_MAX >> __builtin_clzll((uint64_t)hi) : 0;
}

bool step_alu(struct machine *m, const struct fay_insn *insn);   /* ADD ... TEST, INC, DEC */
bool step_carry(struct machine *m, const struct fay_insn *insn); /* ADC SBB */
bool step_unary(struct machine *m, const struct fay_insn *insn); /* NOT NEG */
struct value step_and(struct machine *m, const struct value *a, const struct value *b,
		      unsigned bits);
struct value step_or(struct machine *m, const struct value *a, const struct value *b, unsigned bits,
		     bool exclusive);
/* SHL SHR SAR ROL ROR SHLD SHRD, SHLX SHRX SARX RORX */
bool step_shift(struct machine *m, const struct fay_insn *insn);
bool step_bit_test(struct machine *m, const struct fay_insn *insn); /* BT BTS BTR BTC */
/* BSF BSR TZCNT LZCNT POPCNT BSWAP MOVBE */
bool step_count(struct machine *m, const struct fay_insn *insn);
bool step_bmi(struct machine *m, const struct fay_insn *insn);      /* ANDN BLSI BLSR BLSMSK BZHI */
bool step_multiply(struct machine *m, const struct fay_insn *insn); /* IMUL MUL1 IMUL1 MULX */
bool step_divide(struct machine *m, const struct fay_insn *insn);   /* DIV IDIV */
bool step_sign(struct machine *m, const struct fay_insn *insn);     /* CQO */
/* q, a variable, is floor(f / d): what lies between f and d * q is kept as a fact. */
void step_quotient(struct machine *m, const struct value *q, const struct form *f, wide d);
/* *r, a fresh variable, is floor(factor * f / 2^shift): defined, or what is so already. */
void step_floor(struct machine *m, struct value *r, const struct form *f, uint64_t factor,
		unsigned shift);
/* An instruction of a kind that is not above, or any. */
bool step_any(struct machine *m, const struct fay_insn *insn);

#endif
