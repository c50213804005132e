/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access.h"

_Static_assert(FAY_KEY_BYTES == crypto_sign_PUBLICKEYBYTES &&
		       FAY_SECRET_BYTES == crypto_sign_SECRETKEYBYTES &&
		       FAY_SIGNATURE_BYTES == crypto_sign_BYTES,
	       "Ed25519");

int fay_keys_init(struct fay_error *error)
{
	return sodium_init() < 0 ? fay_error_set(error, FAY_E_INTERNAL, "libsodium does not start")
				 : FAY_OK;
}

void fay_keys_make(struct fay_keys *keys)
{
	crypto_sign_keypair(keys->public, keys->secret);
}

static int write_hex(const char *base, const char *suffix, mode_t mode, const uint8_t *bytes,
		     size_t size, struct fay_error *error)
{
	char path[512], text[2 * FAY_SECRET_BYTES + 2];
	snprintf(path, sizeof(path), "%s%s", base, suffix);
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (file < 0)
		return fay_error_set(error, FAY_E_USAGE, "cannot create '%s': %s", path,
				     strerror(errno));
	sodium_bin2hex(text, sizeof(text), bytes, size);
	size_t length = strlen(text);
	text[length++] = '\n';
	bool written = write(file, text, length) == (ssize_t)length && !fsync(file);
	sodium_memzero(text, sizeof(text));
	if (close(file) || !written)
		return fay_error_set(error, FAY_E_INTERNAL, "cannot write '%s'", path);
	return FAY_OK;
}

int fay_keys_write(const char *base, const struct fay_keys *keys, struct fay_error *error)
{
	int result = write_hex(base, ".key", 0600, keys->secret, sizeof(keys->secret), error);
	return result ? result
		      : write_hex(base, ".pub", 0644, keys->public, sizeof(keys->public), error);
}

static bool hex_exactly(const char *text, size_t length, uint8_t *bytes, size_t size)
{
	size_t got;
	return length == 2 * size && !sodium_hex2bin(bytes, size, text, length, NULL, &got, NULL) &&
	       got == size;
}

int fay_keys_read(const char *path, struct fay_keys *keys, struct fay_error *error)
{
	char text[2 * FAY_SECRET_BYTES + 2] = "";
	struct stat stat;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &stat)) {
		fay_error_set(error, FAY_E_USAGE, "cannot open the key '%s': %s", path,
			      strerror(errno));
		if (file >= 0)
			close(file);
		return FAY_E_USAGE;
	}
	ssize_t got = read(file, text, sizeof(text) - 1);
	close(file);
	if (!S_ISREG(stat.st_mode) || stat.st_mode & 077)
		return fay_error_set(
			error, FAY_E_USAGE,
			"the key '%s' can be read by users other than its owner (chmod 600)", path);
	if (got < 0 || !hex_exactly(text, strcspn(text, "\n"), keys->secret, sizeof(keys->secret)))
		return fay_error_set(error, FAY_E_USAGE,
				     "'%s' is not a key made by `fay cluster keygen`", path);
	sodium_memzero(text, sizeof(text));
	crypto_sign_ed25519_sk_to_pk(keys->public, keys->secret);
	return FAY_OK;
}

void fay_keys_sign(const struct fay_keys *keys, const void *bytes, size_t size,
		   uint8_t signature[FAY_SIGNATURE_BYTES])
{
	crypto_sign_detached(signature, NULL, bytes, size, keys->secret);
}

bool fay_keys_check(const uint8_t key[FAY_KEY_BYTES], const void *bytes, size_t size,
		    const uint8_t signature[FAY_SIGNATURE_BYTES])
{
	return !crypto_sign_verify_detached(signature, bytes, size, key);
}

void fay_keys_hex(char text[FAY_KEY_HEX + 1], const uint8_t key[FAY_KEY_BYTES])
{
	sodium_bin2hex(text, FAY_KEY_HEX + 1, key, FAY_KEY_BYTES);
}

uint64_t fay_keys_random(void)
{
	uint64_t value;
	do
		randombytes_buf(&value, sizeof(value));
	while (!value);
	return value;
}

/* --- files that name others' keys --- */

/* The number of words may be more than `max`, which are stored. */
static size_t split(char *line, char **words, size_t max)
{
	char *rest = NULL;
	size_t count = 0;
	for (char *at = strtok_r(line, " \t", &rest); at;
	     at = strtok_r(NULL, " \t", &rest), count++)
		if (count < max)
			words[count] = at;
	return count;
}

static uint32_t find_role(const struct fay_key_file *file, const char *name)
{
	for (size_t i = 0; i < file->role_count; i++)
		if (!strcmp(file->roles[i].name, name))
			return (uint32_t)i + 1;
	return 0;
}

/* What follows a signer's key. */
static bool read_right(const struct fay_key_file *file, const char *text,
		       struct fay_key_entry *entry)
{
	if (!strncmp(text, "role=", 5))
		return (entry->role = find_role(file, text + 5)) != 0;
	if (strlen(text) >= sizeof(entry->policy))
		return false;
	strcpy(entry->policy, text);
	return true;
}

static int add_entry(struct fay_key_file *file, char **words, size_t count, const char *word,
		     struct fay_error *error)
{
	bool signer = !strcmp(word, "signer");
	struct fay_key_entry entry = { 0 };
	if (count < 3 || count > (signer ? 4 : 3) || strcmp(words[0], word) ||
	    strlen(words[1]) >= sizeof(entry.name) ||
	    !hex_exactly(words[2], strlen(words[2]), entry.key, sizeof(entry.key)) ||
	    (count == 4 && !read_right(file, words[3], &entry)))
		return fay_error_set(error, FAY_E_USAGE, "expected `%s NAME PUBLIC-KEY%s`", word,
				     signer ? " [POLICY-FILE | role=ROLE]`, with a role of a line "
					      "above: `role NAME ..."
					    : "");
	strcpy(entry.name, words[1]);
	struct fay_key_entry *grown =
		file->count < FAY_KEY_ENTRIES_MAX
			? realloc(file->entries, (file->count + 1) * sizeof(*grown))
			: NULL;
	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "too many keys");
	file->entries = grown;
	file->entries[file->count++] = entry;
	return FAY_OK;
}

static int add_role(struct fay_key_file *file, char **words, size_t count, struct fay_error *error)
{
	struct fay_role role;
	if (fay_role_read(words, count, &role, error))
		return error->code;
	if (find_role(file, role.name))
		return fay_error_set(error, FAY_E_USAGE, "the role '%s' is defined twice",
				     role.name);
	struct fay_role *grown =
		file->role_count < FAY_KEY_ROLES_MAX
			? realloc(file->roles, (file->role_count + 1) * sizeof(*grown))
			: NULL;
	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "too many roles");
	file->roles = grown;
	file->roles[file->role_count++] = role;
	return FAY_OK;
}

static int read_lines(FILE *in, const char *path, const char *word, struct fay_key_file *file,
		      struct fay_error *error)
{
	char line[1024], *words[FAY_ROLE_WORDS_MAX];
	for (unsigned number = 1; fgets(line, sizeof(line), in); number++) {
		struct fay_error why;
		bool whole = strchr(line, '\n') || feof(in);
		line[strcspn(line, "#\n")] = 0;
		size_t count = split(line, words, FAY_ROLE_WORDS_MAX);
		int result =
			!whole   ? fay_error_set(&why, FAY_E_USAGE, "a line of more than %zu bytes",
						 sizeof(line) - 2)
			: !count ? FAY_OK
			: count > FAY_ROLE_WORDS_MAX
				? fay_error_set(&why, FAY_E_USAGE, "a line of more than %u words",
						FAY_ROLE_WORDS_MAX)
			: !strcmp(words[0], "role") && !strcmp(word, "signer")
				? add_role(file, words, count, &why)
				: add_entry(file, words, count, word, &why);
		if (result)
			return fay_error_set(error, (enum fay_error_code)result, "%s:%u: %s", path,
					     number, why.message);
	}
	return FAY_OK;
}

int fay_key_file_read(const char *path, const char *word, struct fay_key_file *file,
		      struct fay_error *error)
{
	FILE *in = fopen(path, "re");
	memset(file, 0, sizeof(*file));
	if (!in)
		return fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s", path,
				     strerror(errno));
	int result = read_lines(in, path, word, file, error);
	fclose(in);
	if (result)
		fay_key_file_deinit(file);
	return result;
}

void fay_key_file_deinit(struct fay_key_file *file)
{
	free(file->entries);
	free(file->roles);
	memset(file, 0, sizeof(*file));
}

const struct fay_role *fay_key_file_role(const struct fay_key_file *file,
					 const struct fay_key_entry *entry)
{
	return entry->role ? &file->roles[entry->role - 1] : NULL;
}

const struct fay_key_entry *fay_key_file_find(const struct fay_key_file *file,
					      const uint8_t key[FAY_KEY_BYTES])
{
	for (size_t i = 0; i < file->count; i++)
		if (!memcmp(file->entries[i].key, key, FAY_KEY_BYTES))
			return &file->entries[i];
	return NULL;
}
