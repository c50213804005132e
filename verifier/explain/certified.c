/* SPDX-License-Identifier: MIT */
/* Images that bring a certificate, and making them. The checker decides; here its facts become a
 * verdict. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "verifier/checker/checker.h"

#define ARENA_BYTES ((size_t)512 << 20)

/* What the checker says of an image with its own certificate. */
static bool check(const uint8_t *bytes, size_t size, const struct fay_policy *policy,
		  struct fay_probe_facts *facts, struct check_result *result)
{
	void *memory = malloc(check_room(size));

	*result = (struct check_result){ .refusal = { FAY_RULE_LIM_RESOURCE, 0, "out of memory" } };
	if (memory)
		check_image(bytes, size, NULL, 0, policy, memory, check_room(size), facts, result);
	free(memory);
	return result->refusal.rule == FAY_RULE_NONE;
}

/* The facts of the checker, and what the tables say. */
static bool tell(const uint8_t *bytes, size_t size, const struct fay_probe_facts *facts,
		 const struct check_result *result, struct fay_verdict *verdict)
{
	struct fay_arena *arena = fay_arena_create(ARENA_BYTES);
	struct fay_image image;

	if (!arena)
		return false;
	if (fay_image_parse(arena, bytes, size, &image).rule != FAY_RULE_NONE ||
	    image.probe_count != result->probe_count) {
		fay_arena_destroy(arena);
		return false;
	}
	*verdict = (struct fay_verdict){ .outcome = FAY_ACCEPTED,
					 .layout = image.layout,
					 .schema = image.schema,
					 .probe_count = image.probe_count,
					 .probes = image.probes,
					 .instructions = result->instructions,
					 .certified = true,
					 .arena = arena };
	fay_sha256(bytes, size, verdict->image_sha256);
	for (uint32_t i = 0; i < image.probe_count; i++) {
		const char *pattern = image.probes[i].pattern;

		if (image.probes[i].code_offset != facts[i].code_offset) {
			fay_arena_destroy(arena);
			return false;
		}
		image.probes[i] = facts[i];
		image.probes[i].pattern = pattern;
	}
	return true;
}

bool fay_verify_certified(const void *bytes, size_t size, const struct fay_policy *policy,
			  struct fay_verdict *verdict)
{
	uint64_t begin = fay_monotonic_ns();
	struct check_subject subject;
	struct check_result result;
	struct fay_probe_facts *facts;
	bool ok;

	if (!policy || !policy->allow_certificates)
		return false;
	if (size > FAY_IMAGE_MAX_FILE || check_parse(bytes, size, &subject).rule != FAY_RULE_NONE ||
	    !subject.certificate.size)
		return false;
	facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	/* the loader is told of each place that a table leads to; the checker does not list them */
	ok = facts && check(bytes, size, policy, facts, &result) && !result.tables &&
	     tell(bytes, size, facts, &result, verdict);
	free(facts);
	if (ok)
		verdict->nanoseconds = fay_monotonic_ns() - begin;
	return ok;
}

/* Attaches the certificate and asks the checker. */
static bool attach(const void *bytes, size_t size, const struct fay_policy *policy,
		   const struct fay_bytes *certificate, struct fay_bytes *out, const char **why)
{
	struct fay_probe_facts *facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	struct check_result result = { .refusal = { FAY_RULE_LIM_RESOURCE, 0, "out of memory" } };
	bool ok = facts && fay_certificate_attach(bytes, size, certificate, out) &&
		  check(out->at, out->size, policy, facts, &result);

	*why = result.refusal.what;
	free(facts);
	return ok;
}

int fay_verify_certify(const void *bytes, size_t size, const struct fay_policy *policy,
		       void **image, size_t *image_size, const char **why,
		       struct fay_verdict *verdict)
{
	struct fay_bytes certificate = { 0 }, out = { 0 };
	struct fay_policy standard;
	struct fay_run *run;
	bool ok = false;

	fay_policy_default(&standard);
	policy = policy ? policy : &standard;
	*image = NULL;
	*image_size = 0;
	*why = "out of memory";
	run = fay_prove(bytes, size, policy, NULL, &certificate, verdict);
	if (!run)
		return -1;
	if (verdict->outcome != FAY_ACCEPTED)
		fay_explain(run);
	else if (run->certify.refusal.rule != FAY_RULE_NONE)
		*why = run->certify.refusal.what;
	else
		ok = attach(bytes, size, policy, &certificate, &out, why);
	fay_run_end(run);
	free(certificate.at);
	if (!ok) {
		free(out.at);
		return -1;
	}
	*image = out.at;
	*image_size = out.size;
	return 0;
}
