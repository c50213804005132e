/* SPDX-License-Identifier: MIT */
/* The certificate of an image, probe by probe, as they are proved. */
#include <stdlib.h>

#include "prove_parts.h"
#include "verifier/prover/sweep/live.h"

void fay_certify_proof(struct fay_run *run)
{
	uint32_t *live;

	if (!run->certificate || run->certify.refusal.rule != FAY_RULE_NONE)
		return;
	run->certify.cfg = &run->cfg;
	run->certify.graph = &run->graph;
	run->certify.hint = fay_hint_analysis;
	run->certify.context = &run->an;
	live = fay_live_find(&run->an);
	run->certify.live = live;
	run->certify.mispredicted = !run->an.refine;
	fay_certify_probe(&run->certify, run->certificate);
	free(live);
}

void fay_certify_begin(struct fay_run *run, const void *bytes, size_t size)
{
	uint8_t hash[FAY_CERTIFICATE_HASH], version = FAY_CERTIFICATE_VERSION;
	uint8_t mode = run->policy->speculation_confined ? CERTIFICATE_CONFINED : CERTIFICATE_PLAIN;

	if (!run->certificate)
		return;
	run->certify = (struct fay_certify){ .subject = &run->subject,
					     .size = size,
					     .policy = run->policy };
	run->certify.refusal = check_parse(bytes, size, &run->subject);
	if (run->certify.refusal.rule != FAY_RULE_NONE)
		return;
	check_fingerprint(&run->subject, hash);
	run->certificate->size = 0;
	fay_bytes_put(run->certificate, FAY_CERTIFICATE_MAGIC, 4);
	fay_bytes_put(run->certificate, &version, 1);
	fay_bytes_put(run->certificate, &mode, 1);
	fay_bytes_put(run->certificate, hash, sizeof(hash));
}
