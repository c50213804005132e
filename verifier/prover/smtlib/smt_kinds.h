/* SPDX-License-Identifier: MIT */
/* Kinds of values as terms, beside their numbers: see smt_kinds.c. */
#ifndef FAY_VERIFIER_SMT_KINDS_H
#define FAY_VERIFIER_SMT_KINDS_H

#include "verifier/prover/smt/smt_terms.h"

/* Tags, 32 bits. A slot's upper half of an 8-byte value that is no number has TAG_UPPER added. */
enum {
	TAG_UNREADABLE = 0,
	TAG_NUMBER = 1,
	TAG_POINTER = 2,   /* + enum fay_region */
	TAG_RETURN = 7,    /* + call context << 8 */
	TAG_ENTRY = 0x10,  /* + register: its value at entry */
	TAG_HELPER = 0x20, /* + enum fay_helper: its address */
	TAG_UPPER = 0x40,
};
#define HIGH_BYTE 2u /* of `init`: ah, bh, ch, dh */

struct kind {
	Z3_ast tag;
	Z3_ast init; /* 8 bits: which bytes of a number may be read; of a slot the low 4 */
};

struct fay_kinds {
	struct kind reg[16];
	uint32_t slots;
	struct kind *slot; /* FAY_STACK_HARD / 4 */
	uint8_t undefined; /* flags, FLAG_* */
	int64_t low, high; /* stack bytes that a vector instruction wrote */
};

bool fay_kinds_init(struct fay_kinds *k);
void fay_kinds_deinit(struct fay_kinds *k);
/* Every kind becomes an unknown. */
void fay_kinds_fresh(struct fay_kinds *k, struct query *q, uint32_t slots);
/* Assumes what state s says of kinds. */
void fay_kinds_assume(struct fay_kinds *k, struct query *q, const struct fay_state *s);
/* One instruction; before fay_smt_step() and fay_transfer_step(), whose states it reads. */
void fay_kinds_step(struct fay_kinds *k, struct query *q, const struct fay_insn *insn);
/* After a vector or string instruction, whose effect on kinds is not followed here: the stack bytes
 * it wrote are what state s says. */
void fay_kinds_opaque(struct fay_kinds *k, struct query *q, const struct fay_insn *insn,
		      const struct fay_state *s);
void fay_kinds_depth(struct fay_kinds *k, struct query *q, uint32_t slots);

struct kind fay_kinds_operand(struct fay_kinds *k, struct query *q,
			      const struct fay_operand *operand, unsigned width);
struct kind fay_kinds_address(struct fay_kinds *k, struct query *q, const struct fay_operand *mem);

/* Formulas. */
Z3_ast fay_kinds_is(struct query *q, struct kind kind, unsigned tag);
Z3_ast fay_kinds_number(struct query *q, struct kind kind, unsigned width);
/* its second byte, which ah, bh, ch and dh are */
Z3_ast fay_kinds_high(struct query *q, struct kind kind);
Z3_ast fay_kinds_pointer(struct query *q, struct kind kind);
/* A value that a 64-bit move may take: a number, a pointer, a helper's address, or what a
 * callee-saved register held at entry. */
Z3_ast fay_kinds_movable(struct query *q, struct kind kind);
/* All stack bytes of [low, high) hold numbers that were written. */
Z3_ast fay_kinds_bytes(struct fay_kinds *k, struct query *q, int64_t low, int64_t high);
/* No return address in [low, high). */
Z3_ast fay_kinds_no_return(struct fay_kinds *k, struct query *q, int64_t low, int64_t high);

#endif
