/* SPDX-License-Identifier: MIT */
/* What the two files of the fixpoint share: fixpoint.c checks the states, fixpoint_find.c finds
 * them. */
#ifndef FAY_VERIFIER_FIXPOINT_PARTS_H
#define FAY_VERIFIER_FIXPOINT_PARTS_H

#include "fixpoint.h"

static inline struct fay_refusal out_of_memory(struct fay_analysis *an)
{
	return fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, 0,
			  "out of memory, or over the verifier's memory limit");
}

/* fixpoint.c: refuses if they are not. */
bool fay_fixpoint_same_depth(struct fay_analysis *an, uint32_t node, const struct fay_state *a,
			     const struct fay_state *b);
/* Whether an->in is inductive; gathers facts and obligations. */
bool fay_fixpoint_check(struct fay_analysis *an);

/* fixpoint_find.c: fills an->in. True if a state was widened, so that a narrower invariant is
 * likely. */
bool fay_fixpoint_ascend(struct fay_analysis *an);
/* Tries a narrower invariant: keeps it if it is one. */
bool fay_fixpoint_narrow(struct fay_analysis *an);

#endif
