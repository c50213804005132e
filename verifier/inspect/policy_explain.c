/* SPDX-License-Identifier: MIT */
/* A policy in sentences, for who has to say whether it is the right one: what images may do that it
 * admits, and what not. */
#include <inttypes.h>
#include <string.h>

#include "policy_write.h"
#include "verifier/explain/report_names.h"

static void put_names(FILE *out, uint64_t mask, const char *(*name)(unsigned))
{
	const char *separator = "";

	for (unsigned i = 0; i < 32 && name(i); i++) {
		if (!(mask >> i & 1) || !strcmp(name(i), "?") || !strcmp(name(i), "reserved"))
			continue;
		fprintf(out, "%s%s", separator, name(i));
		separator = ", ";
	}
	fputs(*separator ? "\n" : "nothing\n", out);
}

/* Of those that there are: which are in the mask, or that all are. */
static void put_mask(FILE *out, const char *what, uint64_t mask, const char *(*name)(unsigned))
{
	uint64_t known = 0;

	for (unsigned i = 0; i < 32 && name(i); i++)
		known |= (uint64_t)1 << i;
	fprintf(out, "  %s: ", what);
	if ((mask & known) == known)
		fputs("anything\n", out);
	else
		put_names(out, mask, name);
}

static void put_size(FILE *out, const char *what, uint64_t bytes)
{
	if (bytes)
		fprintf(out, "  %s: at most %" PRIu64 " bytes\n", what, bytes);
	else
		fprintf(out, "  %s: none\n", what);
}

static void put_helpers(FILE *out, uint64_t helpers)
{
	bool emits = helpers >> FAY_HELPER_EMIT & 1, reads = helpers >> FAY_HELPER_TRY_READ & 1;

	fprintf(out,
		"  memory of the program: %s\n"
		"  single calls: %s\n",
		reads ? "read at any address (fay_try_read), never written"
		      : "not read, whatever address a call has",
		emits ? "sent as rows to who traces (fay_emit)"
		      : "not sent; what is counted may be by any value that the probe sees or "
			"reads, texts among them");
}

void fay_policy_explain(FILE *out, const struct fay_policy *policy)
{
	fputs("A probe that this policy admits\n  runs in: ", out);
	for (uint32_t i = 0; i < policy->pattern_count; i++)
		fprintf(out, "%s%s", i ? ", " : "", policy->patterns[i]);
	fputs(policy->pattern_count ? "\n" : "any function\n", out);
	put_mask(out, "runs at", policy->allow_kinds, fay_probe_kind_name);
	put_mask(out, "sees of a call", policy->allow_fields, fay_event_field_name);
	put_helpers(out, policy->allow_helpers);
	fprintf(out,
		"  takes: at most %" PRIu64 " instructions a call, %" PRIu64 " bytes of stack\n",
		policy->max_instructions, policy->max_stack);
	put_size(out, "state of each thread", policy->max_local);
	put_size(out, "state that threads share", policy->max_global);
	fprintf(out, "  a clock of its own: %s\n",
		policy->allow_rdtsc ? "yes, the time stamp counter" : "no");
	fprintf(out, "  vector registers: %s\n", policy->allow_vectors ? "yes" : "no");
	fprintf(out, "  under misprediction: %s\n",
		policy->speculation_confined ? "reads nothing outside of its regions either"
					     : "not looked at");
	if (policy->denied_count) {
		fputs("  has none of the instructions:", out);
		for (uint32_t i = 0; i < policy->denied_count; i++)
			fprintf(out, " %s", policy->denied[i]);
		fputc('\n', out);
	}
	fprintf(out,
		"It is accepted by %s, within %" PRIu32 " ms.\n"
		"No policy lets a probe change the program's memory or registers, make system "
		"calls, leave its code, or loop\nwithout an end.\n",
		policy->require_certificate && policy->allow_certificates
			? "the checker, by a certificate that it brings or that is found"
		: policy->require_certificate ? "the checker, by a certificate that is found"
		: policy->allow_certificates  ? "a certificate that it brings, or by a proof"
					      : "a proof",
		policy->total_ms);
}
