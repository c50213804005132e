/* SPDX-License-Identifier: MIT */
/*
 * --dry-run: everything up to the attachment. The image is made and verified, processes and
 * functions are found, the calls are counted for a moment and the probes tried, as for the budget
 * by default; then all of that is gone from the processes again, and what a trace would be is told.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

#define SHOWN 20u

/* By process; of each those that are called most first, and what cannot be traced at the end. */
static int compare(const void *a, const void *b)
{
	const struct fay_trace_would *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (!x->reason != !y->reason)
		return x->reason ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return strcmp(x->function, y->function);
}

static double a_second(const struct fay_trace_estimate *estimate, uint64_t calls)
{
	return estimate->ns ? (double)calls * 1e9 / (double)estimate->ns : 0;
}

/* The worst of all probes. */
static void worst_case(const struct trace *trace, uint64_t *instructions, uint64_t *stack)
{
	*instructions = *stack = 0;
	for (uint32_t i = 0; i < trace->verdict.probe_count; i++) {
		const struct fay_probe_facts *facts = &trace->verdict.probes[i];
		if (facts->worst_instructions > *instructions)
			*instructions = facts->worst_instructions;
		if (facts->worst_stack > *stack)
			*stack = facts->worst_stack;
	}
}

static void print_functions(FILE *out, const struct fay_trace_estimate *estimate)
{
	size_t shown = 0, skipped = 0;
	pid_t pid = 0;
	for (size_t i = 0; i < estimate->would_count; i++) {
		const struct fay_trace_would *would = &estimate->would[i];
		char comm[FAY_COMM_SIZE] = "";
		if (would->pid != pid) {
			pid = would->pid;
			(void)fay_process_name(pid, comm); /* "": it has ended */
			fprintf(out, "process %d (", (int)pid);
			fay_printable_put(out, comm);
			fputs(")\n", out);
			shown = 0;
		}
		if (shown++ == SHOWN)
			fputs("  and more; --json has all\n", out);
		skipped += would->reason != NULL;
		if (shown > SHOWN)
			continue;
		fputs("  ", out);
		fay_printable_put(out, would->function);
		if (would->reason) {
			fputs(": not traced by a jump: ", out);
			fay_printable_put(out, would->reason);
			fputc('\n', out);
		} else {
			fprintf(out, ": %.4g calls a second\n", a_second(estimate, would->calls));
		}
	}
	fprintf(out, "would trace %zu function%s in %zu process%s", estimate->would_count - skipped,
		estimate->would_count - skipped == 1 ? "" : "s", estimate->processes,
		estimate->processes == 1 ? "" : "es");
	if (skipped)
		fprintf(out, ", and %zu by traps or not at all", skipped);
	fputc('\n', out);
}

static void print_text(FILE *out, const struct trace *trace)
{
	const struct fay_trace_estimate *estimate = &trace->estimate;
	uint64_t instructions, stack;
	worst_case(trace, &instructions, &stack);
	fprintf(out,
		"the probe is accepted%s: at most %" PRIu64 " instructions and %" PRIu64
		" bytes of stack a call; state of %" PRIu32 " bytes a thread, %" PRIu32
		" bytes shared\n",
		trace->verdict.certified ? " by its certificate" : "", instructions, stack,
		trace->schema->local_size, trace->schema->global_size);
	print_functions(out, estimate);
	if (trace->pid_count > estimate->processes)
		fprintf(out, "the busiest of %zu processes were looked at\n", trace->pid_count);
	if (estimate->idle || !estimate->calls)
		fputs(estimate->idle
			      ? "the program is idle, so what probes would take is not known\n"
			      : "none of the functions was called meanwhile, so what probes "
				"would take is not known\n",
		      out);
	else
		fprintf(out,
			"at %.4g calls a second and %.3g ns a call the probes would take about "
			"%.1f%% of the processor time\n",
			a_second(estimate, estimate->calls), estimate->call_ns,
			100 * estimate->share);
	fprintf(out, "calls were counted for %.0f ms; nothing is installed any more\n",
		(double)estimate->ns / 1e6);
}

static void print_json(FILE *out, const struct trace *trace)
{
	const struct fay_trace_estimate *estimate = &trace->estimate;
	bool known = !estimate->idle && estimate->calls;
	uint64_t instructions, stack;
	worst_case(trace, &instructions, &stack);
	fprintf(out,
		"{\"type\":\"dry_run\",\"worst_instructions\":%" PRIu64 ",\"worst_stack\":%" PRIu64
		",\"local_size\":%" PRIu32 ",\"global_size\":%" PRIu32
		",\"certified\":%s,\"processes\":%zu,\"looked_at\":%zu,\"ns\":%" PRIu64
		",\"calls\":%" PRIu64,
		instructions, stack, trace->schema->local_size, trace->schema->global_size,
		trace->verdict.certified ? "true" : "false", trace->pid_count, estimate->processes,
		estimate->ns, estimate->calls);
	if (known)
		fprintf(out, ",\"call_ns\":%.2f,\"share\":%.6f", estimate->call_ns,
			estimate->share);
	fputs(",\"functions\":[", out);
	for (size_t i = 0; i < estimate->would_count; i++) {
		const struct fay_trace_would *would = &estimate->would[i];
		fprintf(out, "%s{\"pid\":%d,\"function\":", i ? "," : "", (int)would->pid);
		fay_json_string(out, would->function, strlen(would->function));
		if (would->reason) {
			fputs(",\"reason\":", out);
			fay_json_string(out, would->reason, strlen(would->reason));
		}
		fprintf(out, ",\"calls\":%" PRIu64 "}", would->calls);
	}
	fputs("]}\n", out);
}

/* What has functions of programs, and them alone. */
static int check_kind(const struct trace *trace, struct fay_error *error)
{
	if (!fay_trace_is_kernel(trace) && !fay_trace_is_mixed(trace) && !trace->native &&
	    !fay_trace_is_file(trace))
		return FAY_OK;
	return fay_error_set(error, FAY_E_USAGE,
			     "--dry-run is for functions of programs; `fay explain` shows how any "
			     "query would run");
}

int fay_cli_trace_dry_run(struct fay_cli_trace *cli, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	struct fay_trace_estimate *estimate = &trace->estimate;
	int result;
	if ((result = fay_trace_select(trace, error)) || (result = fay_trace_image(trace, error)) ||
	    (result = check_kind(trace, error)) || (result = fay_trace_estimate(trace, error)))
		return result;
	if (trace->interrupted)
		return fay_error_set(error, FAY_E_REFUSED, "interrupted");
	if ((result = trace->output.open(trace->output.context, trace, error)))
		return result;
	qsort(estimate->would, estimate->would_count, sizeof(*estimate->would), compare);
	if (cli->writer.format == FAY_FORMAT_JSON)
		print_json(cli->writer.out, trace);
	else
		print_text(cli->writer.out, trace);
	return trace->output.check(trace->output.context, error);
}
