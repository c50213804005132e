/* SPDX-License-Identifier: MIT */
/* Signatures in an attestation of `fay verify --attest`: an envelope of DSSE, whose signatures are
 * over "DSSEv1", its type and its payload with their lengths. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trust.h"
#include "verifier/review/review.h"

#define END "]}\n"
#define PREFIX "DSSEv1 28 application/vnd.in-toto+json "
#define ATTESTATION_MAX (16u << 20)

bool fay_trust_is_attestation(const void *bytes, size_t size)
{
	const size_t head = sizeof(FAY_ATTESTED_HEAD) - 1;
	return size >= head && !memcmp(bytes, FAY_ATTESTED_HEAD, head);
}

/* Signs the payload, base64 of so many bytes. */
static int sign(const char *payload, size_t size, const struct fay_keys *keys,
		uint8_t signature[FAY_SIGNATURE_BYTES], struct fay_error *error)
{
	char *message = malloc(size + sizeof(PREFIX) + 24), lengths[24];
	size_t decoded;
	uint8_t *body = malloc(size + 1);
	int result = FAY_OK;
	if (!message || !body)
		result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	else if (sodium_base642bin(body, size, payload, size, NULL, &decoded, NULL,
				   sodium_base64_VARIANT_ORIGINAL))
		result = fay_error_set(error, FAY_E_REFUSED, "its payload is no base64");
	if (!result) {
		snprintf(lengths, sizeof(lengths), "%zu ", decoded);
		size_t used = strlen(strcat(strcpy(message, PREFIX), lengths));
		memcpy(message + used, body, decoded);
		fay_keys_sign(keys, message, used + decoded, signature);
	}
	free(message);
	free(body);
	return result;
}

/* The envelope with one more signature, the last one, instead of the file. */
static int write_signed(const char *path, const char *text, size_t size,
			const uint8_t signature[FAY_SIGNATURE_BYTES], const char *key,
			struct fay_error *error)
{
	char *made, encoded[2 * FAY_SIGNATURE_BYTES];
	size_t body = size - (sizeof(END) - 1);
	if (asprintf(&made, "%s.new", path) < 0)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	sodium_bin2base64(encoded, sizeof(encoded), signature, FAY_SIGNATURE_BYTES,
			  sodium_base64_VARIANT_ORIGINAL);
	FILE *out = fopen(made, "we");
	bool ok = out != NULL;
	if (ok) {
		fwrite(text, 1, body, out);
		fprintf(out, "%s{\"keyid\":\"%s\",\"sig\":\"%s\"}" END,
			text[body - 1] == '[' ? "" : ",", key, encoded);
		ok = !fflush(out) && !ferror(out) && !fsync(fileno(out));
		ok = !fclose(out) && ok && !rename(made, path);
	}
	if (!ok)
		fay_error_set(error, FAY_E_INTERNAL, "cannot write '%s': %s", path,
			      strerror(errno));
	if (out && !ok)
		unlink(made);
	free(made);
	return ok ? FAY_OK : FAY_E_INTERNAL;
}

int fay_trust_sign_attestation(const char *path, const void *bytes, size_t size,
			       const struct fay_keys *keys, struct fay_error *error)
{
	const size_t end = sizeof(END) - 1;
	char *text = size <= ATTESTATION_MAX ? strndup(bytes, size) : NULL,
	     *payload = text ? text + sizeof(FAY_ATTESTED_HEAD) - 1 : NULL,
	     *tail = text ? strstr(payload, FAY_ATTESTED_TAIL) : NULL, key[FAY_KEY_HEX + 1];
	uint8_t signature[FAY_SIGNATURE_BYTES];
	int result = FAY_OK;
	fay_keys_hex(key, keys->public);
	if (!tail || strlen(text) != size || strcmp(text + size - end, END) != 0 ||
	    (size_t)(tail - text) + sizeof(FAY_ATTESTED_TAIL) - 1 > size - end)
		result = fay_error_set(error, FAY_E_REFUSED,
				       "'%s' is no attestation as `fay verify --attest` writes it",
				       path);
	else if (!strstr(tail, key)) /* once is enough: a key's signature is always the same */
		(void)((result = sign(payload, (size_t)(tail - payload), keys, signature, error)) ||
		       (result = write_signed(path, text, size, signature, key, error)));
	free(text);
	return result;
}
