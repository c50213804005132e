/* SPDX-License-Identifier: MIT */
/*
 * Who may have an image traced here: signatures (Ed25519, libsodium) in a file beside the image,
 * and the administrator's trust store, which says whose count. This comes on top of verification,
 * never instead of it; docs/internals/trust.md has the formats, decision 31 the reasons.
 */
#ifndef FAY_TRACE_TRUST_H
#define FAY_TRACE_TRUST_H

#include "cluster/access/access.h"
#include "fay/verify.h"

#define FAY_TRUST_STORE "/etc/fay/trust"
#define FAY_TRUST_SIGNATURES_MAX 16u
#define FAY_TRUST_SIGNERS_MAX 64u
#define FAY_TRUST_REVOKED_MAX 1024u
#define FAY_TRUST_FILE_MAX 65536u /* bytes of each text file */
#define FAY_TRUST_DIGEST 32u

/* signature.c */

struct fay_trust_signature {
	uint8_t key[FAY_KEY_BYTES];
	uint8_t policy[FAY_TRUST_DIGEST]; /* of the policy's file; zeros: the standard one */
	uint8_t bytes[FAY_SIGNATURE_BYTES];
};
struct fay_trust_signatures {
	size_t count;
	struct fay_trust_signature at[FAY_TRUST_SIGNATURES_MAX]; /* in order of their keys */
};

/* Of a file; path NULL: zeros. */
int fay_trust_policy_digest(const char *path, uint8_t digest[FAY_TRUST_DIGEST],
			    struct fay_error *error);
/* Reads IMAGE.sig. No file: count 0. Anything that is not as it is written: FAY_E_REFUSED. */
int fay_trust_signatures_read(const char *image_path, struct fay_trust_signatures *signatures,
			      struct fay_error *error);
/* Adds a signature to IMAGE.sig, or renews that of the same key. */
int fay_trust_sign(const char *image_path, const void *image, size_t size,
		   const uint8_t policy[FAY_TRUST_DIGEST], const struct fay_keys *keys,
		   struct fay_error *error);
/* Whether the signature is one of these bytes, and of its own policy. */
bool fay_trust_signature_holds(const struct fay_trust_signature *signature, const void *image,
			       size_t size);

/* store.c */

struct fay_trust_signer {
	char name[64];
	uint8_t key[FAY_KEY_BYTES];
	char until[11]; /* the last day, UTC: "2027-12-31"; "": no end */
	bool revoked;
	struct fay_policy scope; /* its patterns alone count */
};
struct fay_trust_store {
	bool asked;        /* there is a number: */
	unsigned required; /* signatures; 0: nobody asks for any */
	size_t count;
	struct fay_trust_signer *signers;
	size_t revoked_count;
	uint8_t (*revoked)[FAY_KEY_BYTES];
};

/* One text file of at most FAY_TRUST_FILE_MAX bytes, whole lines, to be freed; *text NULL: it does
 * not exist. directory: of openat(2). guarded: refused if others than root and the caller could
 * have written it. */
int fay_trust_file_read(int directory, const char *name, bool guarded, char **text,
			struct fay_error *error);
/* `size` bytes of exactly so many hexadecimal digits. */
bool fay_trust_hex(const char *text, size_t length, uint8_t *bytes, size_t size);
/* A directory that does not exist asks for nothing. Anything else that is not as it is written, or
 * that others can write, is refused. To be released in any case. */
int fay_trust_store_read(const char *path, struct fay_trust_store *store, struct fay_error *error);
void fay_trust_store_deinit(struct fay_trust_store *store);
/* Change it; the directory is made. `until` and `tracepoints` (separated by commas) may be NULL. */
int fay_trust_add(const char *path, const char *name, const char *key, const char *until,
		  const char *tracepoints, struct fay_error *error);
int fay_trust_revoke(const char *path, const char *name, struct fay_error *error);
int fay_trust_require(const char *path, const char *count, struct fay_error *error);

/* check.c. FAY_E_REFUSED: the store asks for more signatures than count for this image, which was
 * accepted under the policy of policy_path (NULL: the standard one); the message says why of each.
 */
int fay_trust_check(const struct fay_trust_store *store, const char *image_path, const void *image,
		    size_t size, const char *policy_path, const struct fay_verdict *verdict,
		    struct fay_error *error);
/* The same with the machine's store. */
int fay_trust_check_here(const char *image_path, const void *image, size_t size,
			 const char *policy_path, const struct fay_verdict *verdict,
			 struct fay_error *error);

#endif
