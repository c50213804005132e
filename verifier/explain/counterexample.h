/* SPDX-License-Identifier: MIT */
/* Inputs that break a rule: see counterexample.c. */
#ifndef FAY_VERIFIER_COUNTEREXAMPLE_H
#define FAY_VERIFIER_COUNTEREXAMPLE_H

#include "verifier/prover/smt/smt.h"

/*
 * Looks for an execution from the probe's entry that breaks obligation `o`, beginning with `model`
 * (may be NULL). If one is found it has been executed: counterexample, replayed, path are filled in
 * and true is returned.
 */
bool fay_counterexample_find(struct fay_analysis *an, const struct fay_obligation *o,
			     const struct fay_model *model, struct fay_rejection *rejection);

#endif
