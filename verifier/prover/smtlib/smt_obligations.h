/* SPDX-License-Identifier: MIT */
/* What must hold before each instruction, as formulas: see smt_obligations.c. */
#ifndef FAY_VERIFIER_SMT_OBLIGATIONS_H
#define FAY_VERIFIER_SMT_OBLIGATIONS_H

#include "smt_kinds.h"
#include "smt_proof.h"

struct proof {
	struct query *q;
	struct fay_kinds kinds;
	struct fay_smt2 *out;
};

/* A proof of its own, at the beginning of `node` (or anywhere, if that is FAY_NONE), whose
 * invariant is assumed. out NULL: nothing is written. */
bool fay_proof_begin(struct proof *p, struct fay_analysis *an, struct fay_smt2 *out, uint32_t node);
/* Runs the block. False: its end is not reached. */
bool fay_proof_block(struct proof *p, uint32_t node);
void fay_proof_end(struct proof *p);

/* Writes the obligations of `insn`, which is at an->node, an->insn. */
void fay_proof_obligations(struct proof *p, const struct fay_insn *insn);
/* `goal` holds here: one file. */
void fay_proof_claim(struct proof *p, enum fay_rule rule, const struct fay_insn *insn,
		     const char *what, Z3_ast goal);
/* Whether the obligation of this kind at instruction `index` of the node in hand was left to the
 * solver. */
bool fay_proof_pending(const struct proof *p, uint32_t index, enum fay_goal goal);

/* The loops' bounds (smt_loops.c). */
bool fay_proof_loops(struct fay_analysis *an, struct fay_smt2 *out);

/* Bytes of a region other than the stack; low <= v <= high, signed. */
int64_t fay_proof_region_size(const struct fay_analysis *an, unsigned region);
Z3_ast fay_proof_between(struct query *q, Z3_ast v, int64_t low, int64_t high);

/* The call of a helper (smt_helpers.c). */
void fay_proof_helper(struct proof *p, const struct fay_insn *insn);

#endif
