/* SPDX-License-Identifier: MIT */
/* How probes are dispatched: what `fay explain`, `fay trace --verbose` and `--timing` say of it. */
#include <stdio.h>

#include "cli.h"

void fay_cli_print_dispatch(FILE *out, const char *indent, const struct fay_verdict *verdict)
{
	struct fay_dispatch dispatch;
	fay_dispatch_choose(verdict, &dispatch);
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &verdict->probes[i];
		bool hosted = facts->kind == FAY_PROBE_BEGIN || facts->kind == FAY_PROBE_END || facts->kind == FAY_PROBE_TIMER;
		fprintf(out, "%sprobe %u: ", indent, i);
		if (hosted)
			fprintf(out, "runs in fay itself\n");
		else if (dispatch.inlined[i])
			fprintf(out, "inlined into the trampoline, %u bytes; %s\n", dispatch.inlined[i],
				dispatch.unguarded ? "needs no guard against reentrance" : "guarded against reentrance");
		else
			fprintf(out, "called from the trampoline; guarded against reentrance\n");
	}
}
