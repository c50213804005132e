/* SPDX-License-Identifier: MIT */
/* Invariants of one probe: see fixpoint.c. */
#ifndef FAY_VERIFIER_FIXPOINT_H
#define FAY_VERIFIER_FIXPOINT_H

#include "verifier/prover/transfer/analysis.h"

/* Told of each edge that may be taken, with the state there, which it may change. */
typedef void fay_edge_function(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
			       struct fay_state *s);
/* Runs `node` from `in`. False: the path ended before the end of its block, since an instruction is
 * not allowed there, as far as is known, or is not reachable. */
bool fay_node_run(struct fay_analysis *an, uint32_t node, const struct fay_state *in,
		  fay_edge_function *edge, void *context);

/* Fills an->in (an array of NULLs, one per node) with an inductive invariant, and gathers facts and
 * open obligations. */
struct fay_refusal fay_fixpoint(struct fay_analysis *an);
/* First the cheap attempt (sweep.h), then the same; and if something is left to prove, once more
 * with relations between what moves in the loops. */
struct fay_refusal fay_fixpoint_with_relations(struct fay_analysis *an);
void fay_fixpoint_release(struct fay_analysis *an);

#endif
