/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer over code: the input's bytes become the code of a valid image; what is accepted is
 * executed by soundness.c, and a broken promise is a crash. The template is FAY_FUZZ_TEMPLATE
 * (compiled in), so the fuzzer needs no seeds to get past the file format. The seeds,
 * fuzz_code.corpus, are accepted probes of fuzz_accept (its last argument).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soundness.h"
#include "verifier/prover/smt/smt.h"

/*
 * Of 128 inputs one may ask the solver. Each question makes a context of Z3's, which costs a
 * hundred times what all else does (8 MiB of pages, under the sanitizers); the others are refused
 * where it would have been asked, which loses acceptances and nothing else.
 */
static bool may_ask;

enum fay_answer __real_fay_smt_ask(struct fay_analysis *an, const struct fay_obligation *o,
				   struct fay_model *model, struct fay_smt2 *out);
enum fay_answer __wrap_fay_smt_ask(struct fay_analysis *an, const struct fay_obligation *o,
				   struct fay_model *model, struct fay_smt2 *out);

enum fay_answer __wrap_fay_smt_ask(struct fay_analysis *an, const struct fay_obligation *o,
				   struct fay_model *model, struct fay_smt2 *out)
{
	return may_ask ? __real_fay_smt_ask(an, o, model, out) : ANSWER_UNKNOWN;
}

static uint64_t hash_of(const uint8_t *data, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 0x100000001b3u;
	return hash;
}

/* The digests of file and layout, which under the sanitizers take as long as all the rest, and of
 * questions: any function will do here. */
void __wrap_fay_sha256(const void *data, size_t size, uint8_t digest[32]);

void __wrap_fay_sha256(const void *data, size_t size, uint8_t digest[32])
{
	uint64_t words[4] = { hash_of(data, size), size };

	memcpy(digest, words, sizeof(words));
}

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
	may_ask = hash_of(data, size) >> 57 == 0;
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
