/* SPDX-License-Identifier: MIT */
/* Queries with stacks: each session's probes get the tables by which they walk, and get them anew
 * when the process has loaded modules. */
#include <stdlib.h>

#include "session.h"

static bool shows_stack(const struct fay_plan *plan)
{
	for (uint32_t i = 0; plan && i < plan->column_count; i++)
		if (plan->columns[i].stack_frames)
			return true;
	return false;
}

int fay_trace_stacks_check(const struct trace *trace, struct fay_error *error)
{
	const struct fay_plan *plan = trace->plan;
	if (trace->needs_stack && !shows_stack(plan))
		return fay_error_set(error, FAY_E_USAGE,
				     "--folded and --flame show stacks, and this result has none: "
				     "group by x.Stack(16), for example");
	return FAY_OK;
}

/* `before`: mappings for which there was no room until now. */
static void say_left_out(const struct trace *trace, const struct fay_target *target, size_t before)
{
	if (trace->stacks.left_out > before && !before)
		fprintf(trace->messages,
			"fay: process %d has more mapped code than stacks can be walked through; "
			"they end at what was mapped last\n",
			fay_target_pid(target));
}

int fay_trace_stacks_make(struct trace *trace, struct fay_target *target,
			  struct fay_attach_options *options, struct fay_stack_tables **tables,
			  struct fay_error *error)
{
	*tables = NULL;
	if (!trace->plan || !trace->plan->walks_stacks)
		return FAY_OK;
	uint64_t since = fay_monotonic();
	size_t before = trace->stacks.left_out;
	if (fay_stacks_make(&trace->stacks, target, options, tables, error))
		return error->code;
	say_left_out(trace, target, before);
	fay_trace_stage(trace, "unwind tables", since);
	return FAY_OK;
}

void fay_trace_stacks_update(struct trace *trace, pid_t pid)
{
	struct fay_target *target;
	if (!trace->plan || !trace->plan->walks_stacks || fay_target_open_pid(pid, &target, NULL))
		return;
	for (size_t i = 0; i < trace->session_count; i++) {
		struct fay_stack_tables *tables = trace->stack_tables[i];
		if (!tables || fay_target_pid(trace->targets[i]) != pid)
			continue;
		size_t before = trace->stacks.left_out;
		fay_stacks_renew(&trace->stacks, target, tables, trace->sessions[i]);
		say_left_out(trace, target, before);
	}
	fay_target_close(target);
}

void fay_trace_stacks_deinit(struct trace *trace)
{
	for (size_t i = 0; i < trace->session_count; i++)
		free(trace->stack_tables[i]);
	fay_stacks_deinit(&trace->stacks);
}
