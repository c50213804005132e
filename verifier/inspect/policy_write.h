/* SPDX-License-Identifier: MIT */
/* Policies as text. */
#ifndef FAY_VERIFIER_POLICY_WRITE_H
#define FAY_VERIFIER_POLICY_WRITE_H

#include "fay/verify.h"

/* Lines of a policy file, with comments, that fay_policy_read() makes the same policy of. Where
 * a policy allows all that there is, that is written name by name, or as "all". */
void fay_policy_write(FILE *out, const struct fay_policy *policy, bool by_name);
/* policy_explain.c: sentences. */
void fay_policy_explain(FILE *out, const struct fay_policy *policy);

#endif
