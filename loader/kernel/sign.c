/* SPDX-License-Identifier: MIT */
/*
 * Signs a module as the kernel's build does (scripts/sign-file,
 * Documentation/admin-guide/module-signing.rst): behind the object a detached CMS signature of
 * SHA-256, its description, and a text by which the kernel knows that there is one. The
 * administrator names key and certificate in the environment; the kernel must know the latter.
 */
#include <arpa/inet.h>
#include <limits.h>
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_private.h"

#define MARKER "~Module signature appended~\n"
#define ID_CMS 2u

/* struct module_signature of the kernel's linux/module_signature.h */
struct description {
	uint8_t algorithm, hash, id_type, signer_size, key_id_size, zeros[3];
	uint32_t signature_size; /* big endian */
};

struct signer {
	EVP_PKEY *key;
	X509 *certificate;
	CMS_ContentInfo *cms;
	BIO *content, *signature;
};

static const char *key_path(void)
{
	const char *path = getenv(FAY_KERNEL_KEY);

	return path && *path ? path : NULL;
}

bool fay_kernel_signs(void)
{
	return key_path() != NULL;
}

static int failed(struct fay_error *error, const char *what, const char *path)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	return fay_error_set(error, FAY_E_REFUSED, "the probes' module is not signed: %s '%s': %s",
			     what, path, why ? why : "unknown reason");
}

/* PEM, or DER as in the kernel's build. */
static X509 *read_certificate(const char *path)
{
	BIO *file = BIO_new_file(path, "r");
	X509 *certificate = file ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;

	if (file && !certificate && !BIO_reset(file))
		certificate = d2i_X509_bio(file, NULL);
	BIO_free(file);
	return certificate;
}

/* A key with a password is refused: nobody could be asked for it. */
static int no_password(char *buffer, int size, int writes, void *context)
{
	(void)buffer, (void)size, (void)writes, (void)context;
	return -1;
}

static int read_signer(struct signer *signer, struct fay_error *error)
{
	const char *key = key_path(), *certificate = getenv(FAY_KERNEL_CERTIFICATE);
	BIO *file = BIO_new_file(key, "r");

	signer->key = file ? PEM_read_bio_PrivateKey(file, NULL, no_password, NULL) : NULL;
	BIO_free(file);
	if (!signer->key)
		return failed(error, "key", key);
	if (!certificate || !*certificate)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the probes' module is not signed: " FAY_KERNEL_KEY
				     " names a key, and " FAY_KERNEL_CERTIFICATE " no certificate");
	if (!(signer->certificate = read_certificate(certificate)))
		return failed(error, "certificate", certificate);
	return X509_check_private_key(signer->certificate, signer->key) == 1
		       ? FAY_OK
		       : failed(error, "key and certificate", certificate);
}

static bool sign(struct signer *signer, const uint8_t *bytes, size_t size)
{
	const unsigned flags = CMS_NOCERTS | CMS_BINARY;

	signer->content = BIO_new_mem_buf(bytes, (int)size);
	signer->signature = BIO_new(BIO_s_mem());
	signer->cms =
		CMS_sign(NULL, NULL, NULL, NULL, flags | CMS_PARTIAL | CMS_DETACHED | CMS_STREAM);
	return signer->content && signer->signature && signer->cms &&
	       CMS_add1_signer(signer->cms, signer->certificate, signer->key, EVP_sha256(),
			       flags | CMS_NOSMIMECAP | CMS_NOATTR) &&
	       CMS_final(signer->cms, signer->content, NULL, flags) &&
	       i2d_CMS_bio(signer->signature, signer->cms);
}

static int append(const struct signer *signer, uint8_t **bytes, size_t *size,
		  struct fay_error *error)
{
	char *signature;
	long length = BIO_get_mem_data(signer->signature, &signature);
	struct description description = { .id_type = ID_CMS,
					   .signature_size = htonl((uint32_t)length) };
	uint8_t *grown = length > 0 && length < 65536
				 ? realloc(*bytes, *size + (size_t)length + sizeof(description) +
							   strlen(MARKER))
				 : NULL;

	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	*bytes = grown;
	memcpy(grown + *size, signature, (size_t)length);
	memcpy(grown + *size + length, &description, sizeof(description));
	memcpy(grown + *size + length + sizeof(description), MARKER, strlen(MARKER));
	*size += (size_t)length + sizeof(description) + strlen(MARKER);
	return FAY_OK;
}

int fay_kernel_sign(uint8_t **bytes, size_t *size, struct fay_error *error)
{
	struct signer signer = { 0 };
	int result = FAY_OK;

	if (!fay_kernel_signs())
		return FAY_OK;
	ERR_clear_error();
	if (*size > INT_MAX)
		result = fay_error_set(error, FAY_E_LIMIT,
				       "the probes' module is too large to be signed");
	if (!result && !(result = read_signer(&signer, error)))
		result = sign(&signer, *bytes, *size) ? append(&signer, bytes, size, error)
						      : failed(error, "with key", key_path());
	CMS_ContentInfo_free(signer.cms);
	BIO_free(signer.content);
	BIO_free(signer.signature);
	X509_free(signer.certificate);
	EVP_PKEY_free(signer.key);
	return result;
}
