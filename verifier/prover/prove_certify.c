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
	if (!run->certificate)
		return;
	run->certify = (struct fay_certify){ .subject = &run->subject,
					     .size = size,
					     .policy = run->policy };
	run->certify.refusal = fay_read_image(bytes, size, &run->subject);
	if (run->certify.refusal.rule != FAY_RULE_NONE)
		return;
	fay_certificate_begin(&run->subject, run->policy->speculation_confined, run->certificate);
}
