/* SPDX-License-Identifier: MIT */
/* What the two files of the main line share: verify.c decides, rejection.c explains. */
#ifndef FAY_VERIFIER_VERIFY_PARTS_H
#define FAY_VERIFIER_VERIFY_PARTS_H

#include "verifier/prover/transfer/analysis.h"
#include "verifier/prover/smt/smt_cache.h"
#include "verifier/prover/smtlib/smt_proof.h"

/* One verification. */
struct run {
	struct fay_arena *arena;
	const struct fay_policy *policy;
	struct fay_verdict *verdict;
	struct fay_image image;
	struct fay_cfg cfg;
	uint64_t deadline;
	struct fay_smt2 *smt2; /* or NULL */
	struct fay_smt_cache *cache;
};

/* verify.c: the outcome is the refusal's. image: NULL before there is one. */
void fay_run_reject(struct run *run, const struct fay_image *image, struct fay_refusal refusal);

/* rejection.c */
struct fay_refusal fay_obligation_refusal(const struct fay_analysis *an,
					  const struct fay_obligation *o);
/* Rejects because of `o`; model NULL if the solver gave none. What a policy does not allow needs no
 * execution to show. */
void fay_run_reject_obligation(struct run *run, struct fay_analysis *an,
			       const struct fay_obligation *o, const struct fay_model *model);
/* The shortest chain of blocks from the probe's entry to `node`, as offsets in .text. */
void fay_run_fill_path(const struct fay_analysis *an, uint32_t node,
		       struct fay_rejection *rejection);
/* Facts for a refusal that names a loop's head: termination. */
void fay_run_fill_loop(struct run *run, struct fay_analysis *an, const struct fay_refusal *r);

#endif
