/* SPDX-License-Identifier: MIT */
/* Whether this machine has the instructions that a probe needs. */
#include "dispatcher/user/trampoline.h"
#include "process.h"

int fay_loader_check_cpu(const struct fay_probe_facts *facts, uint32_t probe,
			 struct fay_error *error)
{
	/* in a virtual machine asking takes some 50 us */
	uint32_t missing = facts->cpu_features ? facts->cpu_features & ~fay_cpu_features() : 0;
	const char *name;

	if (!missing)
		return FAY_OK;
	name = fay_cpu_feature_name((unsigned)__builtin_ctz(missing));
	return fay_error_set(error, FAY_E_REFUSED,
			     "probe %u (%s) uses %s instructions, which this machine does not have",
			     probe, facts->pattern, name ? name : "unknown");
}
