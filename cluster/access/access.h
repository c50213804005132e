/* SPDX-License-Identifier: MIT */
/* Who an agent is and whom it obeys: its keys, the files that name machines, signers and their
 * roles, and configuration files. */
#ifndef FAY_CLUSTER_ACCESS_H
#define FAY_CLUSTER_ACCESS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fay/error.h"

/*
 * What a signer may have a machine do, beyond what the policy of its probes says: whose processes,
 * which programs, the kernel, how much of the agent. A line of the signers file names it:
 *
 *     role NAME [policy=FILE] [users=A,B..] [programs=GLOB,GLOB..] [kernel=yes|no] [queries=N]
 *       [memory=MIB] [bytes-per-second=N]
 *
 * Without users= and programs= any process; with either the kernel only if kernel=yes, as its
 * events are those of all processes.
 */

#define FAY_ROLE_USERS_MAX 16u
#define FAY_ROLE_PROGRAMS_MAX 16u
#define FAY_ROLE_WORDS_MAX 9u /* of a line */

struct fay_role {
	char name[64], policy[256]; /* policy "": none */
	uid_t users[FAY_ROLE_USERS_MAX];
	size_t user_count; /* 0: anybody's processes */
	/* globs; with a '/' of the executable's whole path, else of its name */
	char programs[FAY_ROLE_PROGRAMS_MAX][64];
	size_t program_count; /* 0: any program */
	bool kernel;
	uint32_t queries; /* at once; 0: what the agent admits, as below */
	uint64_t memory, bytes_per_second;
};

/* words[0] is "role". A user that the machine does not know is an error: a role must not silently
 * mean somebody else, once there is one. */
int fay_role_read(char *const *words, size_t count, struct fay_role *role, struct fay_error *error);
/*
 * FAY_E_REFUSED: the role does not include the process. All its users count, also those that it
 * could still become (set-user-ID programs). To be asked behind attaching, too, before anything is
 * read from the process: it may have executed another program meanwhile. `role` NULL: any.
 */
int fay_role_admits(const struct fay_role *role, pid_t pid, struct fay_error *error);

/* Ed25519 keys (libsodium) and the files that name those of others. */

#define FAY_KEY_BYTES 32u
#define FAY_SECRET_BYTES 64u
#define FAY_SIGNATURE_BYTES 64u
#define FAY_KEY_HEX (2 * FAY_KEY_BYTES)

struct fay_keys {
	uint8_t public[FAY_KEY_BYTES], secret[FAY_SECRET_BYTES];
};

/* Once, before anything else of cluster/. */
int fay_keys_init(struct fay_error *error);
void fay_keys_make(struct fay_keys *keys);
/* Writes BASE.key (mode 0600, hexadecimal) and BASE.pub; neither may exist. */
int fay_keys_write(const char *base, const struct fay_keys *keys, struct fay_error *error);
/* Reads a .key file. Refuses one that others than its owner can read. */
int fay_keys_read(const char *path, struct fay_keys *keys, struct fay_error *error);
void fay_keys_sign(const struct fay_keys *keys, const void *bytes, size_t size,
		   uint8_t signature[FAY_SIGNATURE_BYTES]);
bool fay_keys_check(const uint8_t key[FAY_KEY_BYTES], const void *bytes, size_t size,
		    const uint8_t signature[FAY_SIGNATURE_BYTES]);
void fay_keys_hex(char text[FAY_KEY_HEX + 1], const uint8_t key[FAY_KEY_BYTES]);
uint64_t fay_keys_random(void); /* never 0 */

#define FAY_KEY_ENTRIES_MAX 4096u
#define FAY_KEY_ROLES_MAX 256u
/* A line "machine NAME PUBLIC-KEY" or "signer NAME PUBLIC-KEY [POLICY-FILE | role=ROLE]" of a file
 * of machines or signers. */
struct fay_key_entry {
	char name[64];
	uint8_t key[FAY_KEY_BYTES];
	char policy[256]; /* "": none */
	uint32_t role;    /* its number in the file, counted from 1; 0: none */
};
struct fay_key_file {
	struct fay_key_entry *entries;
	size_t count;
	struct fay_role *roles; /* of lines `role`, which stand before the signers that have them */
	size_t role_count;
};
/* `word`: "signer" or "machine". Any line that is not understood is an error with file and line. */
int fay_key_file_read(const char *path, const char *word, struct fay_key_file *file,
		      struct fay_error *error);
void fay_key_file_deinit(struct fay_key_file *file);
/* NULL: it has none, and may do anything. */
const struct fay_role *fay_key_file_role(const struct fay_key_file *file,
					 const struct fay_key_entry *entry);
const struct fay_key_entry *fay_key_file_find(const struct fay_key_file *file,
					      const uint8_t key[FAY_KEY_BYTES]);

/* Configuration files: the long options of a command line, one "name = value" a line, a name alone
 * where the option has no value; '#' at a line's beginning or behind a space begins a comment. */

/*
 * Calls `set` with each line's option, which is one of `names`, and its value; NULL: it has none.
 * The values are of malloc(3) and never freed. FAY_E_USAGE: a line is not understood; `set` did not
 * return FAY_OK, and has said why; the file cannot be opened; or it has a password (a URL with
 * USER:PASSWORD@) and others than its owner can read it; a line is of more than 1,022 bytes.
 */
int fay_config_read(const char *path, const struct option *names,
		    int (*set)(void *context, int option, const char *value), void *context,
		    struct fay_error *error);

#endif
