/* SPDX-License-Identifier: MIT */
/* Images with certificates are made here; the checker has the last word. */
#include <errno.h>
#include <stdlib.h>

#include "explain.h"
#include "verifier/accept/accept.h"

/* Attaches the certificate and asks the checker. */
static bool attach(const void *bytes, size_t size, const struct fay_policy *policy,
		   const struct fay_bytes *certificate, struct fay_bytes *out, const char **why)
{
	struct fay_probe_facts *facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	struct check_result result = { .refusal = { FAY_RULE_LIM_RESOURCE, 0, "out of memory" } };
	bool ok = facts && fay_certificate_attach(bytes, size, certificate, out) &&
		  fay_accept_check(out->at, out->size, policy, facts, &result);

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
	bool certified, ok = false;

	fay_policy_default(&standard);
	policy = policy ? policy : &standard;
	*image = NULL;
	*image_size = 0;
	*why = "out of memory";
	run = fay_prove(bytes, size, policy, NULL, &certificate, NULL, verdict);
	if (!run)
		return -1;
	certified = verdict->outcome != FAY_ACCEPTED || run->certify.refusal.rule == FAY_RULE_NONE;
	if (!certified)
		*why = run->certify.refusal.what;
	fay_conclude(run, bytes, size, &certificate);
	if (certified && verdict->outcome == FAY_ACCEPTED)
		ok = attach(bytes, size, policy, &certificate, &out, why);
	free(certificate.at);
	if (!ok) {
		free(out.at);
		return -1;
	}
	*image = out.at;
	*image_size = out.size;
	return 0;
}
