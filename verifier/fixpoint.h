/* SPDX-License-Identifier: MIT */
/* Invariants of one probe: see fixpoint.c. */
#ifndef FAY_VERIFIER_FIXPOINT_H
#define FAY_VERIFIER_FIXPOINT_H

#include "analysis.h"

/* Fills an->in (an array of NULLs, one per node) with an inductive invariant, and gathers facts and open obligations. */
struct fay_refusal fay_fixpoint(struct fay_analysis *an);
/* The same; and if something is left to prove, once more with relations between what moves in the loops. */
struct fay_refusal fay_fixpoint_with_relations(struct fay_analysis *an);
void fay_fixpoint_release(struct fay_analysis *an);

#endif
