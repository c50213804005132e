/* SPDX-License-Identifier: MIT */
/* A trace of kernel functions by native code, through fay.ko: docs/kernel.md. One session for the whole machine. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "trace.h"

#define SKIPPED_SHOWN 5

/* A query about kernel functions runs natively if fay.ko can be loaded; if it is there and cannot be, through BPF, if that is granted. */
static int choose(struct trace *trace, struct fay_error *error)
{
	char path[PATH_MAX];
	const char *refused = fay_kernel_modules_refused();

	if (!fay_kernel_present() || (trace->plan->only_bpf && fay_cli_kernel_bpf_functions()))
		return FAY_OK;
	if (refused) {
		fay_error_set(error, FAY_E_REFUSED, "no native code in the kernel: %s", refused);
	} else if (!fay_kernel_load(NULL, path, error)) {
		trace->native = true;
		return FAY_OK;
	}
	if (!fay_cli_kernel_bpf_functions())
		return error->code;
	fprintf(stderr, "fay: %s; through BPF instead\n", error->message);
	return FAY_OK;
}

int fay_trace_native_prepare(struct trace *trace, struct fay_error *error)
{
	if (trace->plan && trace->cluster.root.bus.url)
		return FAY_OK; /* machines may have no fay.ko; through BPF all are asked in the same way */
	if (!trace->plan)
		trace->native = fay_kernel_is_target(&trace->verdict);
	else if (trace->plan->domain == DOMAIN_KERNEL && trace->plan->kernel == FAY_KERNEL_FUNCTIONS && choose(trace, error))
		return error->code;
	if (!trace->native || (!trace->pid_count && !trace->comm_count && !trace->wait && !trace->follow && !trace->tid_count))
		return FAY_OK;
	return fay_error_set(error, FAY_E_USAGE, "kernel functions are traced in all processes, so -p, --comm, --tid, --follow and --wait mean nothing here; "
						 "ask for some with `where io.pid == ...` or `where io.comm == \"...\"`");
}

static void report(const struct trace *trace)
{
	size_t points = fay_kernel_session_point_count(trace->functions), skipped = fay_kernel_session_skipped_count(trace->functions);

	for (size_t i = 0; i < skipped && (i < SKIPPED_SHOWN || trace->verbose); i++) {
		const struct fay_skipped_point *point = fay_kernel_session_skipped(trace->functions, i);

		fprintf(stderr, "fay: not traced: %s: %s\n", point->function, point->reason);
	}
	if (skipped > SKIPPED_SHOWN && !trace->verbose)
		fprintf(stderr, "fay: not traced: %zu more; --verbose names them\n", skipped - SKIPPED_SHOWN);
	fprintf(stderr, "fay: tracing %zu kernel function%s, native code through fay.ko; Ctrl-C ends\n", points, points == 1 ? "" : "s");
}

int fay_trace_native_attach(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_cli_monotonic();
	size_t size;
	int result = fay_kernel_session_attach(&trace->verdict, NULL, &trace->functions, error);

	if (result)
		return result;
	fay_trace_stage(trace, "find and attach", since);
	struct fay_shm_control *shm = fay_kernel_session_shm(trace->functions, &size);
	fay_kernel_session_run(trace->functions, FAY_PROBE_BEGIN);
	result = fay_aggregator_add(trace->aggregator, shm, size, 0, error);
	if (result)
		return result;
	report(trace);
	if (trace->child)
		kill(trace->child, SIGCONT);
	return FAY_OK;
}

int fay_trace_native_detach(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_cli_monotonic();
	int result = fay_kernel_session_detach(trace->functions, error);

	fay_trace_stage(trace, "detach from the kernel", since);

	if (result)
		fprintf(stderr, "fay: %s\n", error->message);
	fay_kernel_session_run(trace->functions, FAY_PROBE_END);
	return result == FAY_E_LIMIT ? FAY_OK : result; /* said; the result is whole */
}
