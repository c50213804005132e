/* SPDX-License-Identifier: MIT */
/* What the two files on kinds share: smt_kinds.c (formulas, operands, states) and smt_kinds_step.c
 * (instructions). */
#ifndef FAY_VERIFIER_SMT_KINDS_PARTS_H
#define FAY_VERIFIER_SMT_KINDS_PARTS_H

#include "smt_kinds.h"
#include "verifier/prover/transfer/transfer.h"

static inline Z3_ast tag_of(struct query *q, unsigned tag)
{
	return bits(q, tag, 32);
}

static inline struct kind fresh_kind(struct query *q)
{
	return (struct kind){ fresh_bits(q, 32), fresh_bits(q, 8) };
}
static inline struct kind constant_kind(struct query *q, unsigned tag)
{
	return (struct kind){ tag_of(q, tag), bits(q, tag == TAG_NUMBER ? 0xff : 0, 8) };
}

static inline uint32_t slot_of(int64_t offset)
{
	return (uint32_t)(-(offset & ~(int64_t)3) / 4) - 1;
}

static inline bool inside(const struct fay_kinds *k, int64_t low, int64_t high)
{
	return low >= -4 * (int64_t)k->slots && high <= 0 && low < high;
}

/* smt_kinds.c. Offsets from rsp at entry; [low, high) is inside the frame. */
struct kind fay_kinds_load_stack(struct fay_kinds *k, struct query *q, int64_t offset,
				 unsigned size);
void fay_kinds_store_pair(struct fay_kinds *k, struct query *q, int64_t offset, struct kind v);
/* Part of a slot is written with a number, all of whose bytes were. */
void fay_kinds_store_bytes(struct fay_kinds *k, struct query *q, int64_t low, int64_t high,
			   Z3_ast number);
/* A number was written somewhere in [low, high): what was a number still is; a half of anything
 * else is lost. */
void fay_kinds_forget_bytes(struct fay_kinds *k, struct query *q, int64_t low, int64_t high);
void fay_kinds_write_reg(struct fay_kinds *k, struct query *q, unsigned reg, unsigned width,
			 struct kind v);
void fay_kinds_write_operand(struct fay_kinds *k, struct query *q,
			     const struct fay_operand *operand, unsigned width, struct kind v);
/* Slot i (and i - 1, if the value has 8 bytes). */
void fay_kinds_assume_slot(struct fay_kinds *k, struct query *q, const struct fay_state *s,
			   uint32_t i);

#endif
