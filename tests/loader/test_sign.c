/* SPDX-License-Identifier: MIT */
/* Signed modules: test_sign KEY CERTIFICATE OTHER_CERTIFICATE. What is appended is well formed, and
 * is of these bytes and this certificate. */
#include <arpa/inet.h>
#include <openssl/cms.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/kernel/kernel_private.h"

#define MARKER "~Module signature appended~\n"
#define SIZE 5000u

static const char *key, *certificate, *other;

static uint8_t *content(void)
{
	uint8_t *bytes = malloc(SIZE);

	assert_non_null(bytes);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 7);
	return bytes;
}

/* As the kernel takes it apart, from behind (kernel/module/signing.c): the signature's place and
 * size. */
static const uint8_t *signature_of(const uint8_t *bytes, size_t size, size_t *length)
{
	const size_t tail = 12 + strlen(MARKER);
	const uint8_t *description = bytes + size - tail;
	uint32_t big;

	assert_true(size > tail && !memcmp(bytes + size - strlen(MARKER), MARKER, strlen(MARKER)));
	for (int i = 0; i < 8; i++)
		assert_int_equal(description[i], i == 2 ? 2 : 0);
	memcpy(&big, description + 8, sizeof(big));
	*length = ntohl(big);
	assert_int_equal(size, SIZE + *length + tail);
	return bytes + SIZE;
}

/* Whether it is a signature of that content by the certificate's owner. */
static bool is_signed(const uint8_t *bytes, size_t size, const char *by)
{
	size_t length;
	const uint8_t *signature = signature_of(bytes, size, &length);
	BIO *file = BIO_new_file(by, "r"), *data = BIO_new_mem_buf(bytes, SIZE);
	X509 *signer = PEM_read_bio_X509(file, NULL, NULL, NULL);
	CMS_ContentInfo *cms = d2i_CMS_ContentInfo(NULL, &signature, (long)length);
	STACK_OF(X509) *signers = sk_X509_new_null();

	assert_true(signer && cms && signers);
	assert_null(CMS_get1_certs(cms)); /* the kernel has them */
	sk_X509_push(signers, signer);
	bool fine = CMS_verify(cms, signers, NULL, data, NULL,
			       CMS_NO_SIGNER_CERT_VERIFY | CMS_BINARY | CMS_NOINTERN) == 1;
	sk_X509_free(signers);
	CMS_ContentInfo_free(cms);
	X509_free(signer);
	BIO_free(data);
	BIO_free(file);
	return fine;
}

static void signs(void **state)
{
	uint8_t *bytes = content(), *before = content();
	size_t size = SIZE;
	struct fay_error error;

	(void)state;
	setenv(FAY_KERNEL_KEY, key, 1);
	setenv(FAY_KERNEL_CERTIFICATE, certificate, 1);
	assert_true(fay_kernel_signs());
	assert_int_equal(fay_kernel_sign(&bytes, &size, &error), FAY_OK);
	assert_memory_equal(bytes, before, SIZE);
	assert_true(is_signed(bytes, size, certificate));
	assert_false(is_signed(bytes, size, other));
	bytes[SIZE / 2] ^= 1;
	assert_false(is_signed(bytes, size, certificate));
	free(bytes);
	free(before);
}

static void without_a_key_nothing_changes(void **state)
{
	uint8_t *bytes = content();
	size_t size = SIZE;
	struct fay_error error;

	(void)state;
	unsetenv(FAY_KERNEL_KEY);
	assert_false(fay_kernel_signs());
	assert_int_equal(fay_kernel_sign(&bytes, &size, &error), FAY_OK);
	assert_int_equal(size, SIZE);
	free(bytes);
}

static void refused(const char *with_key, const char *with_certificate, const char *says)
{
	uint8_t *bytes = content();
	size_t size = SIZE;
	struct fay_error error;

	setenv(FAY_KERNEL_KEY, with_key, 1);
	setenv(FAY_KERNEL_CERTIFICATE, with_certificate, 1);
	assert_int_equal(fay_kernel_sign(&bytes, &size, &error), FAY_E_REFUSED);
	assert_non_null(strstr(error.message, says));
	assert_int_equal(size, SIZE);
	free(bytes);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	refused("/no/such/key", certificate, "key '/no/such/key'");
	refused(certificate, certificate, "key '"); /* has no key in it */
	refused(key, "", "no certificate");
	refused(key, "/no/such/certificate", "certificate '/no/such/certificate'");
	refused(key, key, "certificate '");
	refused(key, other, "key and certificate");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(signs),
					    cmocka_unit_test(without_a_key_nothing_changes),
					    cmocka_unit_test(says_what_is_wrong) };

	if (argc < 4)
		return 2;
	key = argv[1];
	certificate = argv[2];
	other = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
