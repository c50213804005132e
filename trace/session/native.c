/* SPDX-License-Identifier: MIT */
/* A trace of kernel functions by native code, through fay.ko: docs/kernel.md. One session for the
 * whole machine. */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "trace/kernel/kernel.h"

#include "session.h"

#define SKIPPED_SHOWN 5
#define SIGNATURE_MAX 65536u       /* bytes */
#define FUNCTIONS_EVERY 250000000u /* ns */
#define NATIVE_PIDS_MAX 64u        /* processes: each is compared with */

/* Whose events they are is decided by numbers, in the probe: names, processes that come later, and
 * many, are for BPF. */
static bool needs_bpf(const struct trace *trace)
{
	return trace->plan->only_bpf || trace->follow || trace->wait || trace->comm_count ||
	       trace->pid_count + 1 > NATIVE_PIDS_MAX;
}

/* A query about kernel functions runs natively if fay.ko can be loaded; if it is there and cannot
 * be, through BPF, if that is granted. */
static int choose(const struct trace *trace, bool *native, struct fay_error *error)
{
	char path[PATH_MAX];
	const char *refused = fay_kernel_modules_refused();
	struct fay_kernel_users users;

	if (fay_bpf_functions_off())
		return fay_error_set(error, FAY_E_REFUSED, "%s", fay_bpf_functions_off());
	if (!fay_kernel_present() || (needs_bpf(trace) && fay_kernel_bpf_functions()))
		return FAY_OK;
	if (fay_kernel_users_ask(&users) && users.user) {
		*native = true; /* no module is loaded for a user */
		return FAY_OK;
	}
	if (refused) {
		fay_error_set(error, FAY_E_REFUSED, "no native code in the kernel: %s", refused);
	} else if (!fay_kernel_load(NULL, path, error)) {
		*native = true;
		return FAY_OK;
	}
	if (!fay_kernel_bpf_functions())
		return error->code;
	fprintf(trace->messages, "fay: %s; using BPF instead\n", error->message);
	return FAY_OK;
}

/* That the trace's processes, if it names any, are known to native code. */
static int check_processes(const struct trace *trace, struct fay_error *error)
{
	bool by_number = trace->pid_count || trace->tid_count || trace->command;

	if (!trace->plan && (trace->pid_count || trace->tid_count || trace->comm_count ||
			     trace->follow || trace->wait))
		return fay_error_set(error, FAY_E_USAGE,
				     "an image's kernel functions are traced in all processes, so "
				     "-p, --comm, --tid, --follow and --wait have no effect here");
	if (trace->plan && needs_bpf(trace))
		return fay_error_set(
			error, FAY_E_REFUSED,
			"--comm, --follow, --wait and stacks of kernel functions need BPF, which "
			"cannot attach to functions here; use -p, or `where io.comm == \"...\"`");
	if (trace->plan && by_number && !fay_bpf_knows_processes())
		return fay_error_set(error, FAY_E_REFUSED,
				     "fay runs in a PID namespace (a container), where process IDs "
				     "differ from those in kernel events");
	return FAY_OK;
}

int fay_trace_native_prepare(struct trace *trace, struct fay_error *error)
{
	const struct fay_plan *plan = trace->plan;

	if (plan && trace->remote.bus.url)
		/* machines may have no fay.ko; through BPF all are asked in the same way */
		return FAY_OK;
	if (!plan)
		trace->native = fay_kernel_is_target(&trace->verdict);
	else if (plan->domain == DOMAIN_KERNEL && plan->kernel == FAY_KERNEL_FUNCTIONS &&
		 choose(trace, &trace->native, error))
		return error->code;
	else if (fay_trace_is_mixed(trace) && plan->kernel_spec.probe_count &&
		 choose(trace, &trace->native_side, error))
		return error->code;
	return trace->native || trace->native_side ? check_processes(trace, error) : FAY_OK;
}

void fay_trace_native_policy(const struct trace *trace, struct fay_policy *policy)
{
	struct fay_kernel_users users;

	if (!trace->policy_path && fay_kernel_users_ask(&users) && users.user)
		*policy = users.images;
	fay_policy_restrict_kernel(policy);
}

static void report(const struct trace *trace)
{
	size_t points = fay_kernel_session_point_count(trace->functions),
	       skipped = fay_kernel_session_skipped_count(trace->functions);

	for (size_t i = 0; i < skipped && (i < SKIPPED_SHOWN || trace->verbose); i++) {
		const struct fay_skipped_point *point =
			fay_kernel_session_skipped(trace->functions, i);

		fprintf(trace->messages, "fay: not traced: %s: %s\n", point->function,
			point->reason);
	}
	if (skipped > SKIPPED_SHOWN && !trace->verbose)
		fprintf(trace->messages, "fay: not traced: %zu more; --verbose names them\n",
			skipped - SKIPPED_SHOWN);
	if (fay_kernel_session_called_back(trace->functions))
		fprintf(trace->messages,
			"fay: ftrace calls back at each event, which costs more than a direct "
			"call: %s\n",
			fay_kernel_session_called_back(trace->functions));
	fprintf(trace->messages,
		"fay: tracing %zu kernel function%s, native code through fay.ko%s\n", points,
		points == 1 ? "" : "s", trace->native ? "; Ctrl-C ends" : "");
}

/* IMAGE.p7s; NULL: there is none that could be one. */
static void *read_signature(const char *image, size_t *size)
{
	char path[PATH_MAX];
	uint8_t *signature = malloc(SIGNATURE_MAX + 1);
	FILE *file = image && snprintf(path, sizeof(path), "%s.p7s", image) < PATH_MAX
			     ? fopen(path, "re")
			     : NULL;

	*size = signature && file ? fread(signature, 1, SIGNATURE_MAX + 1, file) : 0;
	if (file)
		fclose(file);
	if (*size && *size <= SIGNATURE_MAX)
		return signature;
	free(signature);
	*size = 0;
	return NULL;
}

static int attach(struct trace *trace, const struct fay_buffer *image,
		  const struct fay_verdict *verdict, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	size_t size;
	int result = fay_trust_log_install(&trace->log, "the kernel, by fay.ko", error);

	if (result)
		return result;
	struct fay_kernel_image given = { .bytes = image->data, .size = image->size };
	void *signature = read_signature(trace->probe_path, &given.signature_size);
	given.signature = signature;
	result = fay_kernel_session_attach(verdict, &given, NULL, &trace->functions, error);
	free(signature);
	if (result)
		return result;
	fay_trace_stage(trace, trace->native ? "find and attach" : "attach to the kernel", since);
	struct fay_shm_control *shm = fay_kernel_session_shm(trace->functions, &size);
	fay_kernel_session_run(trace->functions, FAY_PROBE_BEGIN);
	result = fay_aggregator_add(trace->aggregator, shm, size, 0, error);
	if (!result)
		report(trace);
	return result;
}

int fay_trace_native_attach(struct trace *trace, struct fay_error *error)
{
	int result = fay_trace_check_processes(trace, error);

	if (!result)
		result = attach(trace, &trace->image, &trace->verdict, error);
	if (!result && trace->child)
		kill(trace->child, SIGCONT);
	return result;
}

int fay_trace_native_side_attach(struct trace *trace, struct fay_error *error)
{
	int result = fay_trace_side_image(trace, error);

	return result ? result : attach(trace, &trace->side_image, &trace->side_verdict, error);
}

void fay_trace_native_tick(struct trace *trace)
{
	bool by_bpf = trace->plan && trace->plan->kernel == FAY_KERNEL_FUNCTIONS &&
		      !trace->remote.bus.url;
	uint64_t now = fay_monotonic();

	if (trace->functions)
		fay_kernel_session_tick(trace->functions);
	if ((!trace->functions && !by_bpf) || trace->functions_off ||
	    now - trace->functions_looked < FUNCTIONS_EVERY)
		return;
	trace->functions_looked = now;
	trace->functions_off = fay_bpf_functions_off() != NULL;
	if (trace->functions_off)
		fprintf(trace->messages,
			"fay: %s; it was changed during this trace, and what happened since is "
			"missing\n",
			fay_bpf_functions_off());
}

int fay_trace_native_detach(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	int result = fay_kernel_session_detach(trace->functions, error);

	fay_trace_stage(trace, "detach from the kernel", since);

	if (result)
		fprintf(trace->messages, "fay: %s\n", error->message);
	fay_kernel_session_run(trace->functions, FAY_PROBE_END);
	return result == FAY_E_LIMIT ? FAY_OK : result; /* said; the result is whole */
}
