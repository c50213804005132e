/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer over whole images: fay_verify() never crashes, leaks, hangs, or accepts without saying
 * what. Seeds: fuzz_image.corpus.
 */
#include <stdlib.h>

#include "fay/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fay_policy policy;
	struct fay_verdict verdict;

	fay_policy_default(&policy);
	policy.total_ms = 2000;
	policy.solver_ms = 100;
	fay_verify(data, size, &policy, &verdict);
	if (verdict.outcome == FAY_ACCEPTED ? verdict.probe_count == 0 || !verdict.layout.bytes
					    : !verdict.rejection.rule || !verdict.rejection.what)
		abort();
	fay_verdict_deinit(&verdict);
	return 0;
}
