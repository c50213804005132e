/* SPDX-License-Identifier: MIT */
/*
 * Who may have an image traced here: signatures (Ed25519, libsodium) in a file beside the image,
 * and the administrator's trust store, which says whose count; and the log of what was traced, if
 * the store names one. This comes on top of verification, never instead of it;
 * docs/internals/trust.md has the formats, decisions 31 and 39 the reasons.
 */
#ifndef FAY_TRUST_H
#define FAY_TRUST_H

#include "cluster/access/access.h"
#include "fay/verify.h"

#define FAY_TRUST_STORE "/etc/fay/trust"
#define FAY_TRUST_SIGNATURES_MAX 16u
#define FAY_TRUST_SIGNERS_MAX 64u
#define FAY_TRUST_REVOKED_MAX 1024u
#define FAY_TRUST_FILE_MAX 65536u /* bytes of each text file */
#define FAY_TRUST_DIGEST 32u
#define FAY_TRUST_NAMES 512u   /* of signers, as text */
#define FAY_LOG_PATH_MAX 1024u /* bytes of a log's path */

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
/* The policy with the digest of the very bytes that it was read from; path NULL or "": the standard
 * one. */
int fay_trust_policy_read(const char *path, struct fay_policy *policy,
			  uint8_t digest[FAY_TRUST_DIGEST], struct fay_error *error);
/* Reads IMAGE.sig. No file: count 0. Anything that is not as it is written: FAY_E_REFUSED. */
int fay_trust_signatures_read(const char *image_path, struct fay_trust_signatures *signatures,
			      struct fay_error *error);
/* The same from a message that has so many: key, digest of the policy, signature. */
int fay_trust_signatures_take(const uint8_t *bytes, size_t count,
			      struct fay_trust_signatures *signatures, struct fay_error *error);
/* Adds a signature to IMAGE.sig, or renews that of the same key. */
int fay_trust_sign(const char *image_path, const void *image, size_t size,
		   const uint8_t policy[FAY_TRUST_DIGEST], const struct fay_keys *keys,
		   struct fay_error *error);
/* Whether the signature is one of these bytes, and of its own policy. */
bool fay_trust_signature_holds(const struct fay_trust_signature *signature, const void *image,
			       size_t size);

/* attestation.c: what `fay verify --attest` writes. */

bool fay_trust_is_attestation(const void *bytes, size_t size);
/* Adds the key's signature to the file, which has these bytes, unless it has it. */
int fay_trust_sign_attestation(const char *path, const void *bytes, size_t size,
			       const struct fay_keys *keys, struct fay_error *error);

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
	char log[FAY_LOG_PATH_MAX]; /* the file; "": nothing is logged */
};

/* One text file of at most FAY_TRUST_FILE_MAX bytes, whole lines, to be freed; *text NULL: it does
 * not exist. directory: of openat(2). guarded: refused if others than root and the caller could
 * have written it. */
int fay_trust_file_read(int directory, const char *name, bool guarded, char **text,
			struct fay_error *error);
/* Opened or made (mode 0600), by open(2)'s flags; refused if it is no regular file, or if others
 * than root and the caller could have written it. *file is to be closed in any case but -1. */
int fay_trust_file_open(int directory, const char *name, int flags, int *file,
			struct fay_error *error);
/* Nobody else can put another directory in its place, as in one like /tmp (sticky). */
bool fay_trust_directory_is_guarded(int directory);
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
/* A path from the root, or "none". */
int fay_trust_set_log(const char *path, const char *log, struct fay_error *error);

/* check.c */

/* What is asked about: an image, and who vouches for it. */
struct fay_trust_case {
	const char *name; /* in messages; NULL: there is none */
	const void *image;
	size_t size;
	const uint8_t *policy; /* digest of that under which it was accepted */
	const struct fay_trust_signatures *signatures;
	/* whoever signed a message that the whole image is in, if anybody did; else NULL */
	const uint8_t *asker;
	/* The first place of the accepted image that the scope does not include, or NULL. */
	const char *(*outside)(const void *accepted, const struct fay_policy *scope);
	const void *accepted;
};
/* FAY_E_REFUSED: the store asks for more signatures than count; the message says why of each. `by`:
 * the names of those whose signatures do. */
int fay_trust_judge(const struct fay_trust_store *store, const struct fay_trust_case *asked,
		    char by[FAY_TRUST_NAMES], struct fay_error *error);
/* Of an image that was accepted with this verdict: fay_trust_case.outside. */
const char *fay_trust_outside(const void *verdict, const struct fay_policy *scope);
/* Of an image in a file, with the signatures beside it. */
int fay_trust_check(const struct fay_trust_store *store, const char *image_path, const void *image,
		    size_t size, const uint8_t policy[FAY_TRUST_DIGEST],
		    const struct fay_verdict *verdict, char by[FAY_TRUST_NAMES],
		    struct fay_error *error);
/* The same with the machine's store. */
int fay_trust_check_here(const char *image_path, const void *image, size_t size,
			 const uint8_t policy[FAY_TRUST_DIGEST], const struct fay_verdict *verdict,
			 char by[FAY_TRUST_NAMES], struct fay_error *error);

/* log.c */

#define FAY_LOG_HASH 32u
#define FAY_LOG_HASH_HEX (2 * FAY_LOG_HASH)

struct fay_log_entry {
	const char *event;     /* one word */
	const uint8_t *image;  /* SHA-256 of its file; NULL: there is none */
	const uint8_t *policy; /* SHA-256 of its file; NULL: the standard one */
	const char *text;      /* any; cut where the line is full */
};
/* Adds an entry to the file, which is made if it is not there, and waits until it is on the disk.
 * FAY_E_REFUSED: it is not there; what is asked for must not be done. */
int fay_log_add(const char *path, const struct fay_log_entry *entry, struct fay_error *error);

/* log_read.c */

struct fay_log_line {
	uint64_t number; /* from 1 */
	uint8_t previous[FAY_LOG_HASH];
	const char *time, *user, *event, *image, *policy, *text;
};
struct fay_log_state {
	uint64_t number;            /* of the last entry; 0: there is none */
	uint64_t size;              /* bytes of the file */
	uint64_t torn;              /* lines that are parts of entries, found by later writers */
	uint8_t hash[FAY_LOG_HASH]; /* of all lines */
	char first[24], last[24];   /* times */
};
struct fay_log_reader {
	void *context;
	void (*entry)(void *context, const struct fay_log_line *entry);
	/* line 0: of no line */
	void (*fault)(void *context, uint64_t line, const char *what);
	bool checks; /* FILE.head must be there, unless `noted` is, and fit */
	/* number and hash of an entry that must be in the log; NULL: none was noted */
	const struct fay_log_state *noted;
};
/* Calls `entry` for each entry, `fault` for each place where the log is not as it was written; both
 * may be NULL. FAY_E_REFUSED: there were faults. */
int fay_log_read(const char *path, const struct fay_log_reader *reader, struct fay_log_state *state,
		 struct fay_error *error);

/* logged.c: what a trace writes into the log that the machine's store names, if it names one. */

struct fay_trust_log {
	bool begun;
	char path[FAY_LOG_PATH_MAX];
	char who[64];             /* of an agent: whose query it is; else "" */
	char by[FAY_TRUST_NAMES]; /* who signed the image and counts; "": nobody needed to */
	uint8_t image[FAY_TRUST_DIGEST], policy[FAY_TRUST_DIGEST];
};
/* Reads the store, unless that was done. */
int fay_trust_log_begin(struct fay_trust_log *log, struct fay_error *error);
/* That an image was accepted, or is not traced, since `refusal`; and what it is. The error is that
 * of the log alone. */
int fay_trust_log_verdict(struct fay_trust_log *log, const uint8_t image[FAY_TRUST_DIGEST],
			  const char *what, const struct fay_error *refusal,
			  struct fay_error *error);
/* That it is installed now, before it is. */
int fay_trust_log_install(const struct fay_trust_log *log, const char *where,
			  struct fay_error *error);
/* The same of a process: fay_attach_options.permit, with a log. */
int fay_trust_log_permit(void *log, pid_t pid, struct fay_error *error);

#endif
