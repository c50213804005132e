/* SPDX-License-Identifier: MIT */
/* Images with certificates are made here; the checker has the last word. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Proves, and tells. False: *why is why there is no certificate of the proof. */
static bool find(const void *bytes, size_t size, const struct fay_policy *policy,
		 struct fay_bytes *certificate, const char **why, struct fay_verdict *verdict)
{
	struct fay_run *run = fay_prove(bytes, size, policy, NULL, certificate, NULL, verdict);
	bool certified;

	*why = "out of memory";
	if (!run)
		return false;
	certified = verdict->outcome != FAY_ACCEPTED || run->certify.refusal.rule == FAY_RULE_NONE;
	if (!certified)
		*why = run->certify.refusal.what;
	fay_conclude(run, bytes, size, certificate);
	return certified && verdict->outcome == FAY_ACCEPTED;
}

/* In the place of an acceptance. `missing` is copied. */
static void refuse(struct fay_verdict *verdict, const char *missing)
{
	const struct fay_refusal refusal = {
		.rule = FAY_RULE_POL_CERTIFICATE,
		.outcome = FAY_UNSUPPORTED,
		.what = "the prover accepts the image, but no certificate of that was found which "
			"the checker accepts, and the policy demands one",
		.missing = fay_arena_printf(verdict->arena, "%s", missing),
	};
	struct fay_verdict refused = { .outcome = FAY_UNSUPPORTED, .arena = verdict->arena };

	memcpy(refused.image_sha256, verdict->image_sha256, sizeof(refused.image_sha256));
	fay_rejection_fill(verdict->arena, NULL, &refusal, &refused.rejection);
	*verdict = refused;
}

void fay_demand_certificate(const void *bytes, size_t size, const struct fay_policy *policy,
			    struct fay_verdict *verdict)
{
	struct fay_bytes certificate = { 0 };
	struct fay_verdict again = { 0 }, checked;
	const char *why;

	if (!policy || !policy->require_certificate || verdict->outcome != FAY_ACCEPTED ||
	    verdict->certified)
		return;
	if (!find(bytes, size, policy, &certificate, &why, &again)) {
		refuse(verdict, why);
	} else if (fay_accept_found(bytes, size, certificate.at, certificate.size, policy,
				    &checked)) {
		fay_verdict_deinit(verdict);
		*verdict = checked;
	} else {
		refuse(verdict, "the checker refuses the certificate that was found");
	}
	fay_verdict_deinit(&again);
	free(certificate.at);
}

int fay_verify_certify(const void *bytes, size_t size, const struct fay_policy *policy,
		       void **image, size_t *image_size, const char **why,
		       struct fay_verdict *verdict)
{
	struct fay_bytes certificate = { 0 }, out = { 0 };
	struct fay_policy standard;
	bool ok;

	fay_policy_default(&standard);
	policy = policy ? policy : &standard;
	ok = find(bytes, size, policy, &certificate, why, verdict) &&
	     attach(bytes, size, policy, &certificate, &out, why);
	free(certificate.at);
	if (!ok) {
		free(out.at);
		out = (struct fay_bytes){ 0 };
	}
	*image = out.at;
	*image_size = out.size;
	if (!ok)
		fay_demand_certificate(bytes, size, policy, verdict);
	return ok ? 0 : -1;
}
