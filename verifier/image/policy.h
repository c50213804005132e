/* SPDX-License-Identifier: MIT */
/* The reader of policy files, for files that have more than a policy. */
#ifndef FAY_VERIFIER_POLICY_H
#define FAY_VERIFIER_POLICY_H

#include <stdint.h>

#include "fay/verify.h"

/* Names that a file of another kind has besides; the first without a name is the end. `read` takes
 * a value, and returns NULL or what is wrong with it (static text). */
#define FAY_POLICY_KEYS_MAX 8u
struct fay_policy_keys {
	struct {
		const char *name;
		const char *(*read)(const char *value, void *context);
	} keys[FAY_POLICY_KEYS_MAX];
	void *context;
};
/* As fay_policy_read(), and what the file does not say stays as it is in *policy. */
int fay_policy_read_with(const char *path, struct fay_policy *policy,
			 const struct fay_policy_keys *more, char *message, size_t message_size);
/*
 * What a signature names a policy by: the SHA-256 of the file; if it includes others, that of the
 * hashes of all, its own first, then theirs as they are named. -1: after a message.
 */
#define FAY_POLICY_FILE_MAX 65536u
int fay_policy_digest(const char *path, uint8_t digest[32], char *message, size_t message_size);
/* As fay_policy_read(), with the digest of the same bytes. */
int fay_policy_read_named(const char *path, struct fay_policy *policy, uint8_t digest[32],
			  char *message, size_t message_size);
/* A number as policy files have it. NULL, or what is wrong (static text). */
const char *fay_policy_number(const char *text, uint64_t *value);

#endif
