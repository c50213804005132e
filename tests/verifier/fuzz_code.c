/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer over code: the input's bytes become the code of a valid image; what is accepted is executed by soundness.c, and a broken promise is a crash.
 * The template is FAY_FUZZ_TEMPLATE (compiled in), so the fuzzer needs no seeds to get past the file format.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soundness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct soundness_template template;
	struct fay_policy policy;
	struct fay_verdict verdict;
	const char *wrong = NULL;

	if (!template.file && !soundness_template_read(FAY_FUZZ_TEMPLATE, &template)) {
		fprintf(stderr, "cannot read %s\n", FAY_FUZZ_TEMPLATE);
		abort();
	}
	if (size > template.code_size)
		return -1;
	memset(template.file + template.code_at, 0xc3, template.code_size);
	memcpy(template.file + template.code_at, data, size);
	fay_policy_default(&policy);
	policy.solver_ms = 50;
	policy.total_ms = 2000;
	policy.max_instructions = 20000;
	policy.speculation_confined = size & 1;
	fay_verify(template.file, template.size, &policy, &verdict);
	if (verdict.outcome == FAY_ACCEPTED)
		wrong = soundness_check(template.file, template.size, &verdict, size, 4);
	fay_verdict_deinit(&verdict);
	if (wrong) {
		fprintf(stderr, "unsound: %s\n", wrong);
		abort();
	}
	return 0;
}
