/* SPDX-License-Identifier: MIT */
/* A policy as the file that says it, each line with what it means: docs/policy.md. */
#include <inttypes.h>
#include <string.h>

#include "policy_write.h"
#include "verifier/explain/report_names.h"

/* Names of the bits of a mask; spaces in them are written as '_'. Without `by_name` all that there
 * are is "all", which admits what a later version adds, too. */
static void put_mask(FILE *out, const char *key, const char *what, uint64_t mask,
		     const char *(*name)(unsigned), bool by_name)
{
	uint64_t known = 0;
	unsigned count = 0;
	bool all;

	for (; count < 32 && name(count); count++)
		known |= (uint64_t)1 << count;
	all = !by_name && (mask & known) == known;
	fprintf(out, "# %s\n%s =", what, key);
	for (unsigned i = 0; i < count && !all; i++) {
		if (!(mask >> i & 1))
			continue;
		fputc(' ', out);
		for (const char *c = name(i); *c; c++)
			fputc(*c == ' ' ? '_' : *c, out);
	}
	fputs(all ? " all\n" : mask & known ? "\n" : " none\n", out);
}

static void put_number(FILE *out, const char *key, const char *what, uint64_t value)
{
	fprintf(out, "# %s\n%s = %" PRIu64 "\n", what, key, value);
}

static void put_switch(FILE *out, const char *key, const char *what, bool value)
{
	fprintf(out, "# %s\n%s = %s\n", what, key, value ? "yes" : "no");
}

static void put_patterns(FILE *out, const struct fay_policy *policy)
{
	if (!policy->pattern_count)
		return;
	fputs("# the functions and markers that may be traced\ntracepoints =", out);
	for (uint32_t i = 0; i < policy->pattern_count; i++)
		fprintf(out, " %s", policy->patterns[i]);
	fputc('\n', out);
}

void fay_policy_write(FILE *out, const struct fay_policy *policy, bool by_name)
{
	put_patterns(out, policy);
	put_mask(out, "probe_kinds", "when probes may run", policy->allow_kinds,
		 fay_probe_kind_name, by_name);
	put_mask(out, "allow_event_fields", "what they may read of a call", policy->allow_fields,
		 fay_event_field_name, by_name);
	put_mask(out, "allow_helpers", "which helpers they may call", policy->allow_helpers,
		 fay_helper_name, by_name);
	put_number(out, "max_instructions", "instructions of one call, at most",
		   policy->max_instructions);
	put_number(out, "max_stack", "bytes of stack of one call, at most", policy->max_stack);
	put_number(out, "max_local", "bytes of state for each thread, at most", policy->max_local);
	put_number(out, "max_global", "bytes of state that threads share, at most",
		   policy->max_global);
	put_switch(out, "allow_vectors", "whether they may use vector registers",
		   policy->allow_vectors);
	put_switch(out, "allow_rdtsc", "whether they may read the time stamp counter themselves",
		   policy->allow_rdtsc);
	fprintf(out, "# whether bounds must hold under misprediction, too\nspeculation = %s\n",
		policy->speculation_confined ? "confined" : "unrestricted");
	put_switch(out, "allow_certificates", "whether a certificate may decide",
		   policy->allow_certificates);
	put_switch(out, "require_certificate", "whether the small checker must accept them, too",
		   policy->require_certificate);
	if (policy->denied_count) {
		fputs("# instructions that they may not have\ndeny_instructions =", out);
		for (uint32_t i = 0; i < policy->denied_count; i++)
			fprintf(out, " %s", policy->denied[i]);
		fputc('\n', out);
	}
	put_number(out, "solver_ms", "milliseconds for one question to the solver",
		   policy->solver_ms);
	put_number(out, "total_ms", "milliseconds for the whole verification", policy->total_ms);
}
