/* SPDX-License-Identifier: MIT */
/* A trace of a query about the kernel, through BPF: docs/bpf.md. Nothing is installed in any process. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

#define SKIPPED_SHOWN 5u
#define PROGRAMS_SHOWN 4u

int fay_trace_bpf_prepare(struct trace *trace, struct fay_error *error)
{
	bool here = !trace->cluster.root.bus.url; /* else its agents say what they cannot do */
	if (here && trace->plan->kernel == FAY_KERNEL_FUNCTIONS && !fay_cli_kernel_bpf_functions())
		return fay_error_set(error, FAY_E_REFUSED, "functions of the kernel cannot be traced here: %s", fay_cli_kernel_back_end(FAY_KERNEL_FUNCTIONS));
	if (here && !fay_bpf_knows_processes())
		return fay_error_set(error, FAY_E_REFUSED, "fay runs in a PID namespace (a container): the kernel's events have other process numbers than are known here");
	fay_plan_schema(trace->plan, &trace->kernel_schema);
	trace->schema = &trace->kernel_schema;
	trace->verdict.schema = trace->kernel_schema; /* what a root merges by */
	return FAY_OK;
}

int fay_trace_bpf_generate(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_cli_monotonic();
	struct fay_bpf_options options = {
		.not_self = true,
		.pids = trace->pids,
		.pid_count = trace->pid_count,
		.follow = trace->follow,
		.tids = trace->tids,
		.tid_count = trace->tid_count,
		.comms = trace->comms,
		.comm_count = trace->comm_count,
	};
	int result = fay_plan_generate_bpf(trace->plan, &options, &trace->object, error);
	fay_trace_stage(trace, "generate BPF programs", since);
	return result;
}

static void report(const struct trace *trace)
{
	const struct fay_bpf_object *object = &trace->object;
	uint32_t shown = 0, skipped = 0;
	for (uint32_t i = 0; i < object->program_count; i++) {
		const char *why = fay_bpf_session_skipped(trace->kernel, i);
		if (why && (++skipped <= SKIPPED_SHOWN || trace->verbose))
			fprintf(stderr, "fay: not traced: %s: %s\n", object->programs[i].name, why);
	}
	if (skipped > SKIPPED_SHOWN && !trace->verbose)
		fprintf(stderr, "fay: not traced: %u more; --verbose names them\n", skipped - SKIPPED_SHOWN);
	fprintf(stderr, "fay: tracing the kernel through BPF: ");
	for (uint32_t i = 0; i < object->program_count && shown < PROGRAMS_SHOWN; i++)
		if (!fay_bpf_session_skipped(trace->kernel, i))
			fprintf(stderr, "%s%s", shown++ ? ", " : "", object->programs[i].name);
	if (object->program_count - skipped > shown)
		fprintf(stderr, " and %u more", object->program_count - skipped - shown);
	fprintf(stderr, "; Ctrl-C ends\n");
	if (trace->verbose)
		fprintf(stderr, "fay: %u BPF programs of %u instructions together; the kernel's verifier took them\n", object->program_count,
			fay_bpf_session_instructions(trace->kernel));
}

int fay_trace_bpf_attach(struct trace *trace, struct fay_error *error)
{
	size_t size;
	int result;
	for (size_t i = 0; i < trace->pid_count; i++)
		if (kill(trace->pids[i], 0) && errno == ESRCH)
			return fay_error_set(error, FAY_E_REFUSED, "there is no process %d", trace->pids[i]);
	if ((result = fay_trace_bpf_generate(trace, error)))
		return result;
	uint64_t since = fay_cli_monotonic();
	if ((result = fay_bpf_session_create(&trace->object, &trace->kernel, error)))
		return result;
	struct fay_shm_control *shm = fay_bpf_session_shm(trace->kernel, &size);
	if ((result = fay_aggregator_add(trace->aggregator, shm, size, 0, error)) || (result = fay_bpf_session_attach(trace->kernel, error)))
		return result;
	fay_trace_stage(trace, "load and attach", since);
	report(trace);
	if (trace->child)
		kill(trace->child, SIGCONT);
	return FAY_OK;
}

struct taker {
	struct trace *trace;
	struct fay_error *error;
	int result;
};

static bool take_row(void *context, const uint8_t *row)
{
	struct taker *taker = context;
	taker->result = fay_aggregator_take_row(taker->trace->aggregator, 0, row, taker->error);
	return !taker->result;
}

int fay_trace_bpf_poll(struct trace *trace, struct fay_error *error)
{
	struct taker taker = { trace, error, FAY_OK };
	if (trace->kernel)
		fay_bpf_session_drain(trace->kernel, take_row, &taker);
	return taker.result;
}

bool fay_trace_bpf_goes_on(const struct trace *trace)
{
	if (trace->command)
		return trace->child != 0;
	for (size_t i = 0; i < trace->pid_count; i++)
		if (!kill(trace->pids[i], 0) || errno != ESRCH)
			return true;
	return !trace->pid_count;
}

void fay_trace_bpf_detach(struct trace *trace)
{
	if (trace->kernel)
		fay_bpf_session_detach(trace->kernel);
}

void fay_trace_bpf_deinit(struct trace *trace)
{
	fay_bpf_session_destroy(trace->kernel);
	fay_bpf_object_deinit(&trace->object);
}

/* The programs of functions are named after these. */
const char *fay_trace_bpf_name(const struct trace *trace, uint64_t hash)
{
	const char *name = fay_plan_kernel_name(trace->plan, hash);
	for (uint32_t i = 0; !name && i < trace->object.program_count; i++) {
		const char *space = strchr(trace->object.programs[i].name, ' ');
		if (space && fay_name_hash(space + 1) == hash)
			name = space + 1;
	}
	return name;
}
