/* SPDX-License-Identifier: MIT */
/* What the files of the main line share: prove.c, prove_policy.c, prove_certify.c. */
#ifndef FAY_VERIFIER_PROVE_PARTS_H
#define FAY_VERIFIER_PROVE_PARTS_H

#include "prove.h"

struct fay_refusal fay_policy_too_many(const struct fay_analysis *an, uint64_t instructions);

/* What is read where only a mispredicted way leads: the event must be filled there, arguments
 * passed, and the CPU have the instruction. */
void fay_facts_add(struct fay_probe_facts *facts, const struct fay_probe_facts *wrong);

/* Begins the certificate of the image of `size` bytes, if one is asked for. */
void fay_certify_begin(struct fay_run *run, const void *bytes, size_t size);
/* Writes down what was proved of the probe in hand, as it was last. */
void fay_certify_proof(struct fay_run *run);
/* Looks for a certificate of the image with little work. False: there is none, and run->found is
 * empty. */
bool fay_certify_early(struct fay_run *run);

#endif
