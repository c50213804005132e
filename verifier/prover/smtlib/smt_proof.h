/* SPDX-License-Identifier: MIT */
/*
 * The room that states the whole proof of a probe as SMT-LIB 2, for other solvers: every
 * obligation, kinds of values included, from the invariants that were found. It accepts nothing;
 * its only refusal is for want of memory.
 */
#ifndef FAY_VERIFIER_SMT_PROOF_H
#define FAY_VERIFIER_SMT_PROOF_H

#include "verifier/prover/smt/smt2.h"

/* Every obligation of an analysed probe whose states are inductive. False: memory, or the solver's
 * library failed. */
bool fay_proof_write(struct fay_analysis *an, struct fay_smt2 *out);

#endif
