/* SPDX-License-Identifier: MIT */
/* Between policy.c, which knows the keys of policies, and policy_file.c, which reads files. What is
 * wrong with a value is static text. */
#ifndef FAY_VERIFIER_POLICY_PARTS_H
#define FAY_VERIFIER_POLICY_PARTS_H

#include "fay/verify.h"

#define FAY_POLICY_NAMES 16u /* keys */

/* FAY_POLICY_NAMES: there is no such key. */
size_t fay_policy_key(const char *name);
const char *fay_policy_key_name(size_t key);
/* NULL, or what is wrong; *at is then the word of the value that it is about. */
const char *fay_policy_key_read(size_t key, char *value, struct fay_policy *policy,
				const char **at);
/* *to has what *from says of the key; where `both` say something, the stricter value. */
const char *fay_policy_key_join(size_t key, struct fay_policy *to, const struct fay_policy *from,
				bool both);

#endif
