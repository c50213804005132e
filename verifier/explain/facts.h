/* SPDX-License-Identifier: MIT */
/* What a refusal tells of the place: facts, path, advice. See facts.c. */
#ifndef FAY_VERIFIER_FACTS_H
#define FAY_VERIFIER_FACTS_H

#include "verifier/prover/transfer/analysis.h"

/* "number in [0, 56], multiple of 8", "local + 16", "not written": in the arena. */
const char *fay_value_describe(struct fay_arena *arena, const struct fay_value *v, unsigned reg);
/* Fills facts, steps and advice for a refusal at instruction `insn` of `node`; o may be NULL.
 * rejection->path is there already. */
void fay_facts_fill(struct fay_analysis *an, uint32_t node, uint32_t insn,
		    const struct fay_obligation *o, struct fay_rejection *rejection);

#endif
