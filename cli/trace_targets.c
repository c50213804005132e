/* SPDX-License-Identifier: MIT */
/* The processes that a trace attaches to. */
#include <signal.h>
#include <string.h>

#include "trace.h"

#define SKIPPED_SHOWN 5

static int attach_one(struct trace *trace, pid_t pid, struct fay_error *error)
{
	size_t index = trace->session_count;
	struct fay_attach_options options = { .size = sizeof(options), .shared_from = trace->share };
	struct fay_target *target;
	if (fay_cli_leftovers_clean_pid(pid, error) || fay_target_open_pid(pid, &target, error))
		return error->code;
	trace->targets[index] = target;
	if (fay_session_attach(target, &trace->verdict, &options, &trace->sessions[index], error)) {
		fay_target_close(target);
		trace->targets[index] = NULL;
		return error->code;
	}
	trace->session_count++;
	size_t size;
	struct fay_shm_control *shm = fay_session_shm(trace->sessions[index], &size);
	fay_session_run(trace->sessions[index], FAY_PROBE_BEGIN);
	return fay_aggregator_add(trace->aggregator, shm, size, shm->target_pid, error);
}

void fay_trace_report_points(const struct trace *trace)
{
	size_t points = 0, skipped_count = 0;
	for (size_t s = 0; s < trace->session_count; s++) {
		const struct fay_session *session = trace->sessions[s];
		points += fay_session_point_count(session);
		for (size_t i = 0; i < fay_session_skipped_count(session); i++) {
			const struct fay_skipped_point *skipped = fay_session_skipped(session, i);
			if (++skipped_count > SKIPPED_SHOWN && !trace->verbose)
				continue;
			fprintf(stderr, "fay: not traced: %s: %s\n", skipped->function,
				skipped->reason);
		}
	}
	if (skipped_count > SKIPPED_SHOWN && !trace->verbose)
		fprintf(stderr, "fay: not traced: %zu more; --verbose names them\n",
			skipped_count - SKIPPED_SHOWN);
	fprintf(stderr, "fay: tracing %zu function%s in %zu process%s; Ctrl-C ends\n", points,
		points == 1 ? "" : "s", trace->session_count, trace->session_count == 1 ? "" : "es");
}

/* Several processes by name: one that cannot be traced is named, the others are traced. */
int fay_trace_attach(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_cli_monotonic();
	for (size_t i = 0; i < trace->pid_count; i++) {
		if (!attach_one(trace, trace->pids[i], error))
			continue;
		if (trace->pid_count == 1)
			return error->code;
		fprintf(stderr, "fay: process %d is not traced: %s\n", trace->pids[i],
			error->message);
	}
	fay_trace_stage(trace, "find and attach", since);
	if (!trace->session_count)
		return error->code ? (int)error->code : FAY_E_REFUSED;
	if (trace->child)
		kill(trace->child, SIGCONT);
	return FAY_OK;
}

const char *fay_trace_function_name(void *context, uint64_t hash)
{
	const struct trace *trace = context;
	for (size_t i = 0; i < trace->session_count; i++) {
		const char *name = fay_target_function_name(trace->targets[i], hash);
		if (name)
			return name;
	}
	return NULL;
}
