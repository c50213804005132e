/* SPDX-License-Identifier: MIT */
/* Queries with stacks: each session's probes get the tables by which they walk, and get them anew when the process has loaded modules. */
#include <stdlib.h>

#include "trace.h"

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
	if (trace->writer.format == FAY_FORMAT_FOLDED && !shows_stack(plan))
		return fay_error_set(error, FAY_E_USAGE, "--folded shows stacks, and this result has none: group by x.Stack(16), for example");
	return FAY_OK;
}

static void fill(struct trace *trace, struct fay_target *target, struct fay_stack_tables *tables)
{
	size_t before = trace->stacks.left_out;
	fay_cli_stacks_fill(&trace->stacks, target, tables);
	if (trace->stacks.left_out > before && !before)
		fprintf(stderr, "fay: process %d has more code than stacks can be walked in; they end in what was mapped last\n", fay_target_pid(target));
}

int fay_trace_stacks_make(struct trace *trace, struct fay_target *target, struct fay_attach_options *options, struct fay_stack_tables **tables,
			  struct fay_error *error)
{
	*tables = NULL;
	if (!trace->plan || !trace->plan->walks_stacks)
		return FAY_OK;
	*tables = calloc(1, sizeof(**tables));
	if (!*tables)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	uint64_t since = fay_cli_monotonic();
	fill(trace, target, *tables);
	fay_trace_stage(trace, "unwind tables", since);
	options->global = *tables;
	options->global_size = fay_cli_stacks_size(*tables);
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
		uint64_t rows = tables->row_count;
		fill(trace, target, tables);
		fay_cli_stacks_publish(tables, rows, trace->sessions[i]);
	}
	fay_target_close(target);
}

void fay_trace_stacks_deinit(struct trace *trace)
{
	for (size_t i = 0; i < trace->session_count; i++)
		free(trace->stack_tables[i]);
	fay_cli_stacks_deinit(&trace->stacks);
}
