/* SPDX-License-Identifier: MIT */
/*
 * Proves and certifies images, and has the checker check each with its certificate in it:
 * certify_corpus FILE...
 *
 * A policy may lie beside an image, a struct fay_policy as .pol in place of .fay.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verifier/prover/prove.h"

static uint8_t *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *b;

	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	b = malloc(*size + 1);
	if (fread(b, 1, *size, f) != *size)
		abort();
	fclose(f);
	return b;
}

static bool facts_equal(const struct fay_probe_facts *a, const struct fay_probe_facts *b)
{
	return a->worst_instructions == b->worst_instructions &&
	       a->clobbered_gprs == b->clobbered_gprs && a->event_fields == b->event_fields &&
	       a->arguments_used == b->arguments_used && a->helpers == b->helpers &&
	       a->clobbered_vectors == b->clobbered_vectors && a->worst_stack == b->worst_stack &&
	       a->cpu_features == b->cpu_features && a->code_offset == b->code_offset;
}

/* The checker's, and the prover's. */
static void compare_facts(const char *name, const struct fay_probe_facts *facts,
			  const struct fay_verdict *verdict)
{
	for (uint32_t k = 0; k < verdict->probe_count; k++) {
		const struct fay_probe_facts *a = &facts[k], *b = &verdict->probes[k];

		if (!facts_equal(a, b))
			printf("%s: facts differ: worst %llu %llu gprs %x %x fields %x %x "
			       "args %x %x stack %llu %llu\n",
			       name, (unsigned long long)a->worst_instructions,
			       (unsigned long long)b->worst_instructions, a->clobbered_gprs,
			       b->clobbered_gprs, a->event_fields, b->event_fields,
			       a->arguments_used, b->arguments_used,
			       (unsigned long long)a->worst_stack,
			       (unsigned long long)b->worst_stack);
	}
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	unsigned n = 0, certified = 0, accepted = 0;
	uint64_t code = 0, cert = 0;

	for (int i = 1 + verbose; i < argc; i++) {
		size_t size, psize;
		uint8_t *b = slurp(argv[i], &size), *p;
		char pol[4096];
		struct fay_policy policy;
		struct fay_verdict v;
		struct fay_bytes c = { 0 };
		struct check_result r;
		struct fay_run *run;
		static struct fay_probe_facts facts[FAY_IMAGE_MAX_PROBES];
		size_t ms;
		void *mem;

		fay_policy_default(&policy);
		snprintf(pol, sizeof(pol), "%s", argv[i]);
		strcpy(pol + strlen(pol) - 3, "pol");
		p = slurp(pol, &psize);
		if (p && psize == sizeof(policy))
			memcpy(&policy, p, psize);
		policy.speculation_confined = false;
		free(p);
		if (!b)
			continue;
		n++;
		if (getenv("TRACE"))
			fprintf(stderr, "%s\n", argv[i]);
		run = fay_prove(b, size, &policy, NULL, &c, NULL, &v);
		if (!run)
			abort();
		if (v.outcome != FAY_ACCEPTED) {
			printf("%s: prover refuses: %s\n", argv[i], fay_rule_id(v.rejection.rule));
		} else if (run->certify.refusal.rule != FAY_RULE_NONE) {
			printf("%s: not certified: %s at %llx: %s (solver %llu)\n", argv[i],
			       fay_rule_id(run->certify.refusal.rule),
			       (unsigned long long)run->certify.refusal.place,
			       run->certify.refusal.what,
			       (unsigned long long)v.obligations_by_solver);
		} else {
			struct fay_bytes whole = { 0 };

			certified++;
			if (!fay_certificate_attach(b, size, &c, &whole))
				abort();
			ms = check_room(whole.size);
			mem = malloc(ms);
			check_image(whole.at, whole.size, NULL, 0, &policy, mem, ms, facts, &r);
			free(mem);
			free(whole.at);
			if (r.refusal.rule != FAY_RULE_NONE) {
				printf("%s: checker refuses: %s at %llx: %s\n", argv[i],
				       fay_rule_id(r.refusal.rule),
				       (unsigned long long)r.refusal.place, r.refusal.what);
			} else {
				accepted++;
				code += v.layout.code_size;
				cert += c.size;
				compare_facts(argv[i], facts, &v);
			}
		}
		fay_run_end(run);
		fay_verdict_deinit(&v);
		free(c.at);
		free(b);
	}
	printf("%u images, %u certified, %u accepted by the checker; code %llu, certificates %llu "
	       "bytes\n",
	       n, certified, accepted, (unsigned long long)code, (unsigned long long)cert);
	return 0;
}
