/* SPDX-License-Identifier: MIT */
/*
 * The room of the thorough way to an invariant: found by widening and narrowing (fixpoint_find.c,
 * which need not be right), then checked to be inductive while obligations are gathered
 * (fixpoint.c, which must be).
 */
#ifndef FAY_VERIFIER_FIXPOINT_H
#define FAY_VERIFIER_FIXPOINT_H

#include "verifier/prover/loops/loops.h"

/* Fills an->in (an array of NULLs, one per node) with an inductive invariant, and gathers facts and
 * open obligations. */
struct fay_refusal fay_fixpoint(struct fay_analysis *an);

#endif
