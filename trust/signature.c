/* SPDX-License-Identifier: MIT */
/*
 * IMAGE.sig: a line a signature, "fay-signature-1 KEY POLICY SIGNATURE" in hexadecimal, in order of
 * the keys, each once. There is one way to write a set of signatures, so a file that was cut,
 * re-ordered or edited is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trust.h"
#include "verifier/image/policy.h"

#define SCHEME "fay-signature-1 "
#define DOMAIN "fay image signature 1\n"

_Static_assert(FAY_TRUST_DIGEST == crypto_hash_sha256_BYTES, "SHA-256");

/* What is signed: what it is, the whole file (code, tables, certificate), the policy. */
struct message {
	char domain[sizeof(DOMAIN) - 1];
	uint8_t image[FAY_TRUST_DIGEST], policy[FAY_TRUST_DIGEST];
};

static struct message message_of(const void *image, size_t size, const uint8_t *policy)
{
	struct message message;
	memcpy(message.domain, DOMAIN, sizeof(message.domain));
	crypto_hash_sha256(message.image, image, size);
	memcpy(message.policy, policy, sizeof(message.policy));
	return message;
}

bool fay_trust_signature_holds(const struct fay_trust_signature *signature, const void *image,
			       size_t size)
{
	struct message message = message_of(image, size, signature->policy);
	return fay_keys_check(signature->key, &message, sizeof(message), signature->bytes);
}

int fay_trust_policy_digest(const char *path, uint8_t digest[FAY_TRUST_DIGEST],
			    struct fay_error *error)
{
	char message[512];
	memset(digest, 0, FAY_TRUST_DIGEST);
	if (path && *path && fay_policy_digest(path, digest, message, sizeof(message)))
		return fay_error_set(error, FAY_E_USAGE, "%s", message);
	return FAY_OK;
}

int fay_trust_policy_read(const char *path, struct fay_policy *policy,
			  uint8_t digest[FAY_TRUST_DIGEST], struct fay_error *error)
{
	char message[512];
	memset(digest, 0, FAY_TRUST_DIGEST);
	fay_policy_default(policy);
	if (path && *path && fay_policy_read_named(path, policy, digest, message, sizeof(message)))
		return fay_error_set(error, FAY_E_USAGE, "%s", message);
	return FAY_OK;
}

/* One line without its end. */
static bool read_line(const char *line, size_t length, struct fay_trust_signature *signature)
{
	const size_t scheme = sizeof(SCHEME) - 1, key = scheme + 2 * FAY_KEY_BYTES,
		     policy = key + 1 + 2 * FAY_TRUST_DIGEST,
		     end = policy + 1 + 2 * FAY_SIGNATURE_BYTES;
	return length == end && !memcmp(line, SCHEME, scheme) && line[key] == ' ' &&
	       line[policy] == ' ' &&
	       fay_trust_hex(line + scheme, 2 * FAY_KEY_BYTES, signature->key, FAY_KEY_BYTES) &&
	       fay_trust_hex(line + key + 1, 2 * FAY_TRUST_DIGEST, signature->policy,
			     FAY_TRUST_DIGEST) &&
	       fay_trust_hex(line + policy + 1, 2 * FAY_SIGNATURE_BYTES, signature->bytes,
			     FAY_SIGNATURE_BYTES);
}

static int refuse_line(const char *path, size_t number, const char *line, struct fay_error *error)
{
	bool known = !strncmp(line, SCHEME, sizeof(SCHEME) - 1);
	return fay_error_set(error, FAY_E_REFUSED, "%s:%zu: %s", path, number,
			     known ? "a damaged signature"
				   : "no signature, or one by an unknown scheme");
}

static int parse(const char *path, const char *text, struct fay_trust_signatures *signatures,
		 struct fay_error *error)
{
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n"), n = signatures->count;
		struct fay_trust_signature *at = &signatures->at[n];
		if (n == FAY_TRUST_SIGNATURES_MAX)
			return fay_error_set(error, FAY_E_REFUSED, "%s: more than %u signatures",
					     path, FAY_TRUST_SIGNATURES_MAX);
		if (!read_line(line, length, at))
			return refuse_line(path, n + 1, line, error);
		if (n && memcmp(at[-1].key, at->key, FAY_KEY_BYTES) >= 0)
			return fay_error_set(error, FAY_E_REFUSED,
					     "%s:%zu: signatures that are not in order", path,
					     n + 1);
		signatures->count++;
		line += length + 1; /* the file has whole lines */
	}
	return FAY_OK;
}

static char *signature_path(const char *image_path, const char *suffix, struct fay_error *error)
{
	char *path;
	if (asprintf(&path, "%s.sig%s", image_path, suffix) >= 0)
		return path;
	fay_error_set(error, FAY_E_LIMIT, "out of memory");
	return NULL;
}

int fay_trust_signatures_read(const char *image_path, struct fay_trust_signatures *signatures,
			      struct fay_error *error)
{
	char *path = signature_path(image_path, "", error), *text = NULL;
	int result =
		path ? fay_trust_file_read(AT_FDCWD, path, false, &text, error) : (int)FAY_E_LIMIT;
	*signatures = (struct fay_trust_signatures){ 0 };
	if (!result && text)
		result = parse(path, text, signatures, error);
	free(text);
	free(path);
	return result;
}

int fay_trust_signatures_take(const uint8_t *bytes, size_t count,
			      struct fay_trust_signatures *signatures, struct fay_error *error)
{
	*signatures = (struct fay_trust_signatures){ .count = count };
	if (count > FAY_TRUST_SIGNATURES_MAX)
		return fay_error_set(error, FAY_E_REFUSED, "more than %u signatures",
				     FAY_TRUST_SIGNATURES_MAX);
	memcpy(signatures->at, bytes, count * sizeof(signatures->at[0]));
	for (size_t i = 1; i < count; i++)
		if (memcmp(signatures->at[i - 1].key, signatures->at[i].key, FAY_KEY_BYTES) >= 0)
			return fay_error_set(error, FAY_E_REFUSED,
					     "signatures that are not in order");
	return FAY_OK;
}

static void put_hex(FILE *out, const char *before, const uint8_t *bytes, size_t size)
{
	char text[2 * FAY_SIGNATURE_BYTES + 1];
	fprintf(out, "%s%s", before, sodium_bin2hex(text, sizeof(text), bytes, size));
}

/* All or nothing: a new file takes the old one's place. */
static int write_all(const char *image_path, const struct fay_trust_signatures *signatures,
		     struct fay_error *error)
{
	char *path = signature_path(image_path, "", error),
	     *made = signature_path(image_path, ".new", error);
	FILE *out = path && made ? fopen(made, "we") : NULL;
	bool ok = out != NULL;
	for (size_t i = 0; ok && i < signatures->count; i++) {
		put_hex(out, SCHEME, signatures->at[i].key, FAY_KEY_BYTES);
		put_hex(out, " ", signatures->at[i].policy, FAY_TRUST_DIGEST);
		put_hex(out, " ", signatures->at[i].bytes, FAY_SIGNATURE_BYTES);
		fputc('\n', out);
	}
	if (out) {
		ok = !fflush(out) && !ferror(out) && !fsync(fileno(out));
		ok = !fclose(out) && ok && !rename(made, path);
	}
	int result = ok ? FAY_OK
		     : !path || !made
			     ? (int)FAY_E_LIMIT
			     : fay_error_set(error, FAY_E_INTERNAL, "cannot write '%s': %s", path,
					     strerror(errno));
	if (out && !ok)
		unlink(made);
	free(path);
	free(made);
	return result;
}

int fay_trust_sign(const char *image_path, const void *image, size_t size,
		   const uint8_t policy[FAY_TRUST_DIGEST], const struct fay_keys *keys,
		   struct fay_error *error)
{
	struct message message = message_of(image, size, policy);
	struct fay_trust_signatures all;
	struct fay_trust_signature own;
	size_t at = 0;
	if (fay_trust_signatures_read(image_path, &all, error))
		return error->code;
	memcpy(own.key, keys->public, sizeof(own.key));
	memcpy(own.policy, policy, sizeof(own.policy));
	fay_keys_sign(keys, &message, sizeof(message), own.bytes);
	while (at < all.count && memcmp(all.at[at].key, own.key, FAY_KEY_BYTES) < 0)
		at++;
	if (at == all.count || memcmp(all.at[at].key, own.key, FAY_KEY_BYTES)) {
		if (all.count == FAY_TRUST_SIGNATURES_MAX)
			return fay_error_set(error, FAY_E_LIMIT, "'%s' has %u signatures already",
					     image_path, FAY_TRUST_SIGNATURES_MAX);
		memmove(&all.at[at + 1], &all.at[at], (all.count - at) * sizeof(all.at[0]));
		all.count++;
	}
	all.at[at] = own;
	return write_all(image_path, &all, error);
}
