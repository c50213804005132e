/* SPDX-License-Identifier: MIT */
/*
 * What each operation computes, written once: semantics.c, semantics_bits.c and
 * semantics_multiply.c say it over terms, and the same functions run on numbers (exec.c) and on
 * Z3's bit vectors (smt_insn.c).
 *
 * A term is a bit vector of 1 to 128 bits, or a boolean (width 0). A term whose value is known is a
 * number, whoever asks: term.c computes with numbers as SMT-LIB 2 defines the operations (shifts
 * beyond the width give 0 or the sign, x / 0 is all ones, x % 0 is x), and only what depends on
 * something unknown is built by the back end. So exec.c needs no term operations of its own.
 *
 * Rules for a semantics function: read every operand once, before anything is written; write memory
 * before registers (the address may depend on one); flags through flag_set and flag_undefine, never
 * by assumption of their old value. Where the Intel SDM (volume 2) leaves a result undefined it is
 * `unknown`: the interpreter then keeps what the CPU keeps, and the solver may assume nothing.
 */
#ifndef FAY_VERIFIER_SEMANTICS_H
#define FAY_VERIFIER_SEMANTICS_H

#include "insn.h"

enum fay_term_op {
	TERM_NOT,
	TERM_NEG, /* NOT of booleans too */
	TERM_AND,
	TERM_OR,
	TERM_XOR, /* of booleans too */
	TERM_ADD,
	TERM_SUB,
	TERM_MUL,
	TERM_SHL,
	TERM_SHR,
	TERM_SAR,
	TERM_UDIV,
	TERM_UREM,
	TERM_SDIV,
	TERM_SREM,
	TERM_EQ,
	TERM_ULT,
	TERM_ULE,
	TERM_SLT,
	TERM_SLE, /* give booleans */
	TERM_ITE, /* boolean, then, else */
	/* width is the result's, low the lowest bit */
	TERM_EXTRACT,
	TERM_ZEXT,
	TERM_SEXT,
	TERM_CONCAT, /* a is the upper part */
	TERM_OP_COUNT
};

typedef unsigned __int128 fay_word;

struct fay_term {
	fay_word value; /* if known; below 2^width */
	void *ast;      /* else the back end's term */
	uint8_t width;
	bool known;
};

struct fay_semantics;
struct fay_semantics_ops {
	/* Terms of which something is unknown. Width and low: see enum fay_term_op. */
	struct fay_term (*build)(struct fay_semantics *, enum fay_term_op,
				 const struct fay_term *args, unsigned count, unsigned width,
				 unsigned low);
	/* The machine. Operands are registers, immediates and memory; a register write follows the
	 * rules of insn.h. */
	struct fay_term (*read)(struct fay_semantics *, const struct fay_operand *, unsigned width);
	void (*write)(struct fay_semantics *, const struct fay_operand *, unsigned width,
		      struct fay_term);
	/* of a memory operand, 64 bits, without access */
	struct fay_term (*address)(struct fay_semantics *, const struct fay_operand *);
	struct fay_term (*flag)(struct fay_semantics *, uint8_t flag);
	void (*flag_set)(struct fay_semantics *, struct fay_term condition, uint8_t flag,
			 struct fay_term value);
	void (*flag_undefine)(struct fay_semantics *, struct fay_term condition, uint8_t flags);
	/* A result that is not modelled or not defined; `current` is what the interpreter uses. */
	struct fay_term (*unknown)(struct fay_semantics *, struct fay_term current);
	void (*push)(struct fay_semantics *, struct fay_term value);
	/* 8 bytes at register `reg`; rsp becomes reg + 8 */
	struct fay_term (*pop)(struct fay_semantics *, unsigned reg);
	struct fay_term (*code_address)(struct fay_semantics *, uint64_t address);
	void (*jump)(struct fay_semantics *, struct fay_term condition, struct fay_term target);
	void (*divide_error)(struct fay_semantics *, struct fay_term condition);
	void (*call_helper)(struct fay_semantics *);
	void (*vector)(struct fay_semantics *); /* what a vector instruction writes is not known */
	/* `count` elements of insn->width from [rsi] or, if `fill` is not NULL, of that value, to
	 * [rdi]. */
	void (*string)(struct fay_semantics *, struct fay_term count, const struct fay_term *fill);
};

struct fay_semantics {
	const struct fay_semantics_ops *ops;
	const struct fay_insn *insn;
	bool exact; /* also what costs a solver much: wide division */
};

/* ---- term.c ---- */

struct fay_term fay_term_const(fay_word value, unsigned width);
struct fay_term fay_term_bool(bool value);
fay_word fay_term_evaluate(enum fay_term_op op, const struct fay_term *args, unsigned width,
			   unsigned low);
struct fay_term fay_term1(struct fay_semantics *, enum fay_term_op, struct fay_term a);
struct fay_term fay_term2(struct fay_semantics *, enum fay_term_op, struct fay_term a,
			  struct fay_term b);
struct fay_term fay_term_ite(struct fay_semantics *, struct fay_term condition, struct fay_term a,
			     struct fay_term b);
/* `width` bits from bit `low` up. */
struct fay_term fay_term_extract(struct fay_semantics *, struct fay_term a, unsigned low,
				 unsigned width);
/* or cuts off */
struct fay_term fay_term_zext(struct fay_semantics *, struct fay_term a, unsigned width);
struct fay_term fay_term_sext(struct fay_semantics *, struct fay_term a, unsigned width);
struct fay_term fay_term_concat(struct fay_semantics *, struct fay_term high, struct fay_term low);
struct fay_term fay_term_bit(struct fay_semantics *, struct fay_term a, unsigned bit); /* boolean */
struct fay_term fay_term_is_zero(struct fay_semantics *, struct fay_term a);
/* width as a's */
struct fay_term fay_term_popcount(struct fay_semantics *, struct fay_term a);
/* ones from the highest bit set downward */
struct fay_term fay_term_smear(struct fay_semantics *, struct fay_term a);

/* ---- semantics.c, semantics_bits.c ---- */

struct fay_term fay_semantics_condition(struct fay_semantics *, enum fay_cc cc);
/* ZF SF PF */
void fay_semantics_result_flags(struct fay_semantics *, struct fay_term condition,
				struct fay_term result);
/* Runs insn->op's function. */
void fay_semantics_run(struct fay_semantics *s);

#define OP(ident, name, dst, src, reads, writes, undefined, attributes, transfer, semantics, step, \
	   flow, implicit, meaning)                                                                \
	void fay_semantics_##semantics(struct fay_semantics *s, const struct fay_insn *insn);
#include "ops.def"
#undef OP

#endif
