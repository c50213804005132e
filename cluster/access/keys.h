/* SPDX-License-Identifier: MIT */
/* Ed25519 keys (libsodium) and the files that name those of others. */
#ifndef FAY_CLUSTER_KEYS_H
#define FAY_CLUSTER_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"
#include "role.h"

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

#endif
