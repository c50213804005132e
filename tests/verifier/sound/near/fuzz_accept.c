/* SPDX-License-Identifier: MIT */
/*
 * Looks for unsound acceptances: random probes that are nearly right, executed whenever the
 * verifier accepts them.
 *
 *	fuzz_accept TEMPLATE SECONDS [SEED [FOLDER]]
 *
 * A probe is made of idioms (bounded index and access, counted loop, spill and reload, helper call,
 * save and restore) and of single random instructions, and then damaged with small probability:
 * another register, constant, condition or width. So about half are accepted, and the other half
 * lie close to the border. soundness.c (the interpreter) and native.c (the CPU) say what is
 * checked. FOLDER gets the code of each accepted probe (seeds of fuzz_code). An unsound image is
 * kept as fuzz_accept-SEED.fay and the program fails.
 *
 * Limits: it finds only what random search finds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fay/verify.h"
#include "near_code.h"
#include "tests/verifier/sound/native.h"

static uint64_t native_steps;

static void keep(const struct soundness_template *template, uint64_t seed)
{
	char name[64];
	FILE *stream;

	snprintf(name, sizeof(name), "fuzz_accept-%llu.fay", (unsigned long long)seed);
	stream = fopen(name, "wb");
	if (stream) {
		fwrite(template->file, 1, template->size, stream);
		fclose(stream);
	}
	printf("     kept as %s\n", name);
}

static void save(const char *folder, uint64_t seed, const struct code *code)
{
	char path[512];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%llu", folder, (unsigned long long)seed);
	stream = fopen(path, "wb");
	if (stream) {
		fwrite(code->bytes, 1, code->size, stream);
		fclose(stream);
	}
}

static const char *folder; /* or NULL */

/* Verifies the probe of `seed`; executes it if accepted. */
static bool try_seed(struct soundness_template *template, const struct fay_policy *policy,
		     uint64_t seed, unsigned *accepted, unsigned *rules)
{
	struct soundness_random random = { seed };
	struct code code = { .random = &random, .template = template };
	struct fay_verdict verdict;
	const char *wrong = NULL;

	near_generate(&code);
	memset(template->file + template->code_at, 0xc3, template->code_size);
	memcpy(template->file + template->code_at, code.bytes, code.size);
	/* Sections lie in the file as they do in memory. */
	memcpy(template->file + template->code_at + (template->rodata + 32 - template->text),
	       code.tables, sizeof(code.tables));
	fay_verify(template->file, template->size, policy, &verdict);
	if (verdict.outcome == FAY_ACCEPTED) {
		++*accepted;
		if (folder)
			save(folder, seed, &code);
		wrong = soundness_check(template->file, template->size, &verdict, seed * 31, 24);
		if (!wrong)
			wrong = native_check(template->file, template->size, &verdict, seed * 37, 2,
					     &native_steps);
	} else {
		rules[verdict.rejection.rule]++;
	}
	fay_verdict_deinit(&verdict);
	if (wrong) {
		printf("UNSOUND seed %llu: %s\n", (unsigned long long)seed, wrong);
		keep(template, seed);
	}
	return !wrong;
}

int main(int argc, char **argv)
{
	unsigned tried = 0, accepted = 0, unsound = 0, rules[FAY_RULE_COUNT] = { 0 };
	struct soundness_template template;
	struct fay_policy policy;
	uint64_t seed;
	time_t end;

	if (argc < 3 || !soundness_template_read(argv[1], &template) || native_init()) {
		fprintf(stderr, "usage: fuzz_accept TEMPLATE SECONDS [SEED [FOLDER]]\n");
		return 2;
	}
	near_init();
	seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL) * 1000003;
	folder = argc > 4 ? argv[4] : NULL;
	end = time(NULL) + strtol(argv[2], NULL, 0);
	fay_policy_default(&policy);
	policy.solver_ms = 100;
	policy.total_ms = 3000;
	policy.max_instructions = 50000;
	printf("first seed %llu\n", (unsigned long long)seed);
	do {
		unsound += !try_seed(&template, &policy, seed++, &accepted, rules);
		tried++;
	} while (time(NULL) < end && unsound < 10);
	printf("%u probes, %u accepted and executed (%llu instructions on the CPU), %u unsound\n",
	       tried, accepted, (unsigned long long)native_steps, unsound);
	for (unsigned i = 1; i < FAY_RULE_COUNT; i++) {
		if (rules[i])
			printf("  %s %u\n", fay_rule_id(i), rules[i]);
	}
	if (tried >= 100 && accepted * 20 < tried) {
		printf("FAIL fewer than 5 %% accepted: the generator tests nothing\n");
		return 1;
	}
	free(template.file);
	return unsound != 0;
}
