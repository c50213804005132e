/* SPDX-License-Identifier: MIT */
/*
 * Calls are counted and no probe runs (fay_attach_options.counts_only). Everything behind this,
 * from the patterns to the patches, is done as for probes, for a verdict without state whose probes
 * read nothing, change nothing and have no code: what is left of a trampoline is the account of
 * what it costs, which counts each event (dispatcher/user/trampoline_cost.c).
 */
#include "session.h"

#include <stdlib.h>

static bool is_placed(uint32_t kind)
{
	return kind != FAY_PROBE_BEGIN && kind != FAY_PROBE_END && kind != FAY_PROBE_TIMER;
}

/* A call is counted where it begins, also for those who ask for its end. */
static uint32_t counted_kind(uint32_t kind)
{
	return kind == FAY_PROBE_RETURN || kind == FAY_PROBE_EXCEPTION ? FAY_PROBE_ENTRY : kind;
}

int fay_counting_make(const struct fay_verdict *verdict, struct fay_verdict *counted,
		      struct fay_error *error)
{
	struct fay_probe_facts *probes = calloc(verdict->probe_count + 1u, sizeof(*probes));
	uint32_t count = 0;

	if (!probes)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (uint32_t i = 0; i < verdict->probe_count; i++)
		if (is_placed(verdict->probes[i].kind))
			probes[count++] = (struct fay_probe_facts){
				.pattern = verdict->probes[i].pattern,
				.kind = counted_kind(verdict->probes[i].kind),
				.parameter = verdict->probes[i].parameter,
				.code_offset = verdict->probes[i].code_offset,
				.analysed = true,
			};
	*counted = (struct fay_verdict){
		.outcome = verdict->outcome,
		.layout = verdict->layout,
		.probe_count = count,
		.probes = probes,
	};
	return 0;
}

void fay_counting_deinit(struct fay_verdict *counted)
{
	free(counted->probes);
	*counted = (struct fay_verdict){ 0 };
}

void fay_counting_choose(const struct fay_verdict *counted, struct fay_dispatch *dispatch)
{
	*dispatch = (struct fay_dispatch){ .unguarded = true };
	for (uint32_t i = 0; i < counted->probe_count; i++) {
		dispatch->inlined[i] = true;
		dispatch->unguarded &= counted->probes[i].kind == FAY_PROBE_ENTRY;
	}
}
