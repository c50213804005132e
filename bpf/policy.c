/* SPDX-License-Identifier: MIT */
/* What a policy says of BPF programs: docs/decisions/0012-bpf-on-agents.md. */
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#include "fay/bpf.h"
#include "fay/check.h"
#include "fay/verify.h"

static bool is_named(const struct fay_policy *policy, const struct fay_bpf_program *program)
{
	char name[80];
	const char *space = strchr(program->name, ' ');
	snprintf(name, sizeof(name), "kernel!%s", space ? space + 1 : program->name);
	return fay_policy_allows(policy, name);
}

int fay_bpf_check_policy(const struct fay_bpf_object *object, const struct fay_policy *policy,
			 const char *whose, struct fay_error *error)
{
	struct fay_policy usual;
	fay_policy_default(&usual);
	if (policy->max_instructions < usual.max_instructions ||
	    policy->allow_helpers != usual.allow_helpers || policy->denied_count ||
	    policy->allow_fields != usual.allow_fields || policy->speculation_confined)
		return fay_error_set(error, FAY_E_REFUSED,
				     "%s has limits that cannot be checked for BPF programs, so it "
				     "allows none",
				     whose);
	if (object->local_size > policy->max_local)
		return fay_error_set(error, FAY_E_REFUSED, "%u bytes of state; %s allows %llu",
				     object->local_size, whose,
				     (unsigned long long)policy->max_local);
	for (uint32_t i = 0; i < object->program_count; i++) {
		const struct fay_bpf_program *program = &object->programs[i];
		unsigned kind = program->period                      ? FAY_PROBE_TIMER
				: program->attach == BPF_TRACE_FEXIT ? FAY_PROBE_RETURN
								     : FAY_PROBE_ENTRY;
		if (!(policy->allow_kinds >> kind & 1))
			return fay_error_set(error, FAY_E_REFUSED,
					     "%s does not allow probes of kind %s", whose,
					     fay_probe_kind_name(kind));
		if (!is_named(policy, program))
			return fay_error_set(error, FAY_E_REFUSED,
					     "%s does not allow %s (as kernel!NAME)", whose,
					     program->name);
	}
	return FAY_OK;
}
