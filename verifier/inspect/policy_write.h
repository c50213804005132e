/* SPDX-License-Identifier: MIT */
/* Policies as text. */
#ifndef FAY_VERIFIER_POLICY_WRITE_H
#define FAY_VERIFIER_POLICY_WRITE_H

#include "fay/verify.h"

/* Lines of a policy file, with comments, that fay_policy_read() makes the same policy of. */
void fay_policy_write(FILE *out, const struct fay_policy *policy);
/* policy_explain.c: sentences. */
void fay_policy_explain(FILE *out, const struct fay_policy *policy);

#endif
