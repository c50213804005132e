/* SPDX-License-Identifier: MIT */
/* From a file to the checker, and what tells early that a certificate or an image is for others. */
#include <string.h>

#include "reader.h"
#include "verifier/image/sha256.h"

void fay_read_fingerprint(const struct check_subject *s, uint8_t hash[FAY_CERTIFICATE_HASH])
{
	struct {
		uint8_t text[32], rodata[32];
		uint64_t numbers[6];
		uint8_t hash[FAY_EXTENSION_HASH]; /* of extensions only */
	} all = { .numbers = { s->text.start, s->text.size, s->rodata.start, s->rodata.size,
			       s->local_size, s->global_size } };
	uint8_t whole[32];

	fay_sha256(s->text.bytes, s->text.size, all.text);
	fay_sha256(s->rodata.bytes, s->rodata.size, all.rodata);
	if (s->hash.size)
		memcpy(all.hash, s->hash.bytes, sizeof(all.hash));
	fay_sha256((const uint8_t *)&all, sizeof(all) - (s->hash.size ? 0 : sizeof(all.hash)),
		   whole);
	memcpy(hash, whole, FAY_CERTIFICATE_HASH);
}

struct check_refusal fay_read_image(const uint8_t *file, size_t size, struct check_subject *subject)
{
	return fay_read_extension(file, size, &check_probe_interface, subject);
}

/* The image is for this interface. */
static bool for_host(const struct check_subject *s)
{
	uint8_t hash[FAY_EXTENSION_HASH];

	if (s->interface == &check_probe_interface)
		return true;
	fay_sha256((const uint8_t *)s->interface, sizeof(*s->interface), hash);
	return !memcmp(s->hash.bytes, hash, sizeof(hash));
}

/* The certificate, if it is one, is for this image. */
static bool for_image(const struct check_subject *s, const uint8_t *certificate, size_t size)
{
	uint8_t hash[FAY_CERTIFICATE_HASH];

	if (!check_is_certificate(certificate, size))
		return true;
	fay_read_fingerprint(s, hash);
	return !memcmp(certificate + FAY_CERTIFICATE_HEADER - sizeof(hash), hash, sizeof(hash));
}

void check_extension(const struct fay_interface *interface, const uint8_t *image, size_t size,
		     const uint8_t *certificate, size_t certificate_size,
		     const struct fay_policy *policy, void *memory, size_t memory_size,
		     struct fay_probe_facts *facts, struct check_result *result)
{
	struct check_subject *s = &result->subject;
	struct check_refusal *refusal = &result->refusal;

	memset(result, 0, sizeof(*result));
	*refusal = (struct check_refusal){ FAY_RULE_IMG_TABLE, 0, "no host interface" };
	if (interface != &check_probe_interface && !fay_read_interface(interface))
		return;
	*refusal = fay_read_extension(image, size, interface, s);
	if (refusal->rule != FAY_RULE_NONE)
		return;
	*refusal = (struct check_refusal){ FAY_RULE_IMG_TABLE, 0, "the image is for another host" };
	if (!for_host(s))
		return;
	*refusal = check_policy(s, policy);
	if (refusal->rule != FAY_RULE_NONE)
		return;
	*refusal = (struct check_refusal){ FAY_RULE_CRT_FORMAT, 6,
					   "the certificate is for another image" };
	if (certificate ? for_image(s, certificate, certificate_size)
			: for_image(s, s->certificate.bytes, s->certificate.size))
		check_parts(image, size, certificate, certificate_size, policy, memory, memory_size,
			    facts, result);
}

void check_image(const uint8_t *image, size_t size, const uint8_t *certificate,
		 size_t certificate_size, const struct fay_policy *policy, void *memory,
		 size_t memory_size, struct fay_probe_facts *facts, struct check_result *result)
{
	check_extension(&check_probe_interface, image, size, certificate, certificate_size, policy,
			memory, memory_size, facts, result);
}
