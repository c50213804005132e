/* SPDX-License-Identifier: MIT */
/*
 * A trace's life: query or vendor image -> image -> verifier -> loader -> aggregator -> output.
 *
 * Whatever ends a trace (its owner, its time, the query's own deadline, the targets' exit, a full
 * disk under the output), the end is the same: detach from all targets, merge once more now that
 * nothing can count any longer, hand on the final result and what was lost.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "fay/bpf.h"
#include "process/delay/delay.h"
#include "session.h"

#define CLOCK_SET 1000000 /* ns: two clocks that are read one behind the other differ by less */

void fay_trace_init(struct trace *trace, const struct trace_output *output, FILE *messages)
{
	trace->started = fay_monotonic();
	trace->epoch = fay_realtime() - fay_boottime();
	trace->output = *output;
	trace->messages = trace->traps.messages = messages;
}

void fay_trace_stage(struct trace *trace, const char *name, uint64_t since)
{
	if (trace->stage_count < sizeof(trace->stages) / sizeof(trace->stages[0]))
		trace->stages[trace->stage_count++] =
			(struct stage){ name, fay_monotonic() - since };
}

uint64_t fay_trace_now(const struct trace *trace)
{
	if (trace->root || trace->native || trace->native_side)
		return fay_realtime();
	return trace->epoch + fay_boottime();
}

int64_t fay_trace_clock_set(const struct trace *trace)
{
	int64_t set = (int64_t)(trace->epoch - (fay_realtime() - fay_boottime()));
	return set > CLOCK_SET || set < -CLOCK_SET ? set : 0;
}

void fay_trace_deinit(struct trace *trace)
{
	/* The aggregator says good-bye in the sessions' shared memory. */
	fay_follow_end(&trace->follower);
	fay_addresses_deinit(&trace->addresses);
	fay_trace_stacks_deinit(trace);
	fay_root_destroy(trace->root);
	fay_trace_budget_deinit(trace);
	fay_trace_would_deinit(&trace->estimate);
	fay_aggregator_destroy(trace->aggregator);
	fay_texts_destroy(trace->texts);
	fay_trace_join_deinit(trace);
	fay_trace_counted_deinit(trace);
	fay_trace_bpf_deinit(trace);
	fay_trace_executed_deinit(trace);
	fay_kernel_session_destroy(trace->functions);
	for (size_t i = 0; i < trace->watched_count; i++)
		fay_trace_modules_leave(trace, &trace->watched[i]);
	for (size_t i = 0; i < trace->session_count; i++)
		fay_session_destroy(trace->sessions[i]);
	for (size_t i = 0; i < trace->session_count; i++)
		fay_target_close(trace->targets[i]);
	fay_trace_traps_deinit(trace);
	for (size_t i = 0; i < trace->gone_count; i++)
		fay_target_close(trace->gone[i]);
	fay_files_destroy(trace->files);
	free(trace->gone);
	free(trace->seen);
	for (size_t i = 0; trace->views && i < trace->view_count; i++) {
		free(trace->views[i].columns);
		free(trace->views[i].computed);
	}
	fay_names_deinit(&trace->readable);
	fay_result_deinit(&trace->collected);
	free(trace->views);
	if (trace->verified)
		fay_verdict_deinit(&trace->verdict);
	fay_buffer_deinit(&trace->image);
	if (trace->side_verified)
		fay_verdict_deinit(&trace->side_verdict);
	fay_buffer_deinit(&trace->side_image);
	if (trace->plan)
		fay_plan_destroy(trace->plan);
}

int fay_trace_spawn(struct trace *trace, struct fay_error *error)
{
	bool early = fay_trace_is_kernel(trace) || trace->native;
	int result = early ? fay_process_spawn_early(trace->command, &trace->child, error)
			   : fay_process_spawn(trace->command, &trace->child, error);
	if (!result)
		trace->pids[trace->pid_count++] = trace->child;
	return result;
}

int fay_trace_prepare(struct trace *trace, struct fay_error *error)
{
	int result;
	if ((result = fay_trace_select(trace, error)) || (result = fay_trace_image(trace, error)))
		return result;
	if ((result = fay_aggregator_create(trace->schema, &trace->aggregator, error)) ||
	    (result = fay_trace_texts_start(trace, error)))
		return result;
	fay_aggregator_on_row(trace->aggregator, fay_trace_row, trace);
	if ((result = fay_trace_join_start(trace, error)) ||
	    (result = fay_trace_counted_start(trace, error)))
		return result;
	if ((result = fay_trace_save_start(trace, error)))
		return result;
	if ((result = trace->output.open(trace->output.context, trace, error)) ||
	    trace->remote.bus.url)
		return result;
	if ((trace->follow || trace->wait) && (result = fay_files_create(&trace->files, error)))
		return result;
	if (trace->follow && !fay_trace_is_kernel(trace) && !trace->native &&
	    (result = fay_follow_start(&trace->follower, error)))
		return result;
	return trace->command && !trace->child ? fay_trace_spawn(trace, error) : FAY_OK;
}

/* Attaches to all that the trace is about, here. What the kernel sees of a process is watched
 * before the process goes on; windows begin before there are events. */
static int attach(struct trace *trace, struct fay_error *error)
{
	int result = fay_trace_windows_start(trace, error);
	if (result)
		return result;
	if (trace->native)
		return fay_trace_native_attach(trace, error);
	if (!fay_trace_is_kernel(trace) && fay_trace_decide_budget(trace, error))
		return error->code;
	if (trace->native_side)
		result = fay_trace_native_side_attach(trace, error);
	else if (trace->bpf_count)
		result = fay_trace_bpf_attach(trace, error);
	return result || fay_trace_is_kernel(trace) ? result : fay_trace_attach(trace, error);
}

int fay_trace_begin(struct trace *trace, struct fay_error *error)
{
	int result = attach(trace, error);
	if (result)
		return result;
	if (!fay_trace_is_kernel(trace) && !trace->native)
		fay_trace_report_points(trace);
	trace->output.schema(trace->output.context, trace);
	fay_trace_estimate_print(trace);
	fay_trace_run_begin(trace);
	fay_btf_let_go();
	fay_delay_rest();
	return FAY_OK;
}

int fay_trace_end(struct trace *trace, int result, struct fay_error *error)
{
	result = fay_trace_finish(trace, result, error);
	if (!result && !trace->session_count && !trace->trapped_count && !trace->gone_count &&
	    trace->first_failure.code) {
		/* of all that was followed nothing could be traced */
		*error = trace->first_failure;
		result = error->code;
	}
	return result;
}
