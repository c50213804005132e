/* SPDX-License-Identifier: MIT */
/* The first, cheap attempt at a proof: see sweep.c. */
#ifndef FAY_VERIFIER_SWEEP_H
#define FAY_VERIFIER_SWEEP_H

#include "verifier/prover/transfer/analysis.h"

/*
 * True: every obligation holds and every loop is bounded; facts, obligation_count, bounds and
 * worst_instructions are as after the fixpoint and fay_loops_bound(), and an->in holds the states
 * if an->keep asks for them. False: nothing was decided, and *an is as it was; or an->refusal is
 * set (memory, time).
 */
bool fay_sweep(struct fay_analysis *an);

#endif
