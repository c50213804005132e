/* SPDX-License-Identifier: MIT */
/* `fay trace --cluster`: the same query on many machines. The image is made and verified here; the
 * agents verify it again. */
#include <inttypes.h>
#include <string.h>

#include "cluster/wire/wire.h"

#include "parts.h"
#include "trust/trust.h"

#define TICK_MS 10
#define REFUSALS_SHOWN 5u
#define DETACHED_LEASE 3600000000000u /* ns without a server that stores anything */

/* The query's BPF programs, as the image that is sent. */
static int make_object(struct trace *trace, struct fay_error *error)
{
	struct fay_writer_buffer out = { .limit = FAY_WIRE_IMAGE_MAX };
	int result = fay_trace_bpf_generate(trace, error);
	if (!result)
		result = fay_object_write(&trace->bpf[0].object, trace->schema, &out, error);
	if (result) {
		fay_wire_free(&out);
		return result;
	}
	trace->image.data = out.bytes;
	trace->image.size = out.size;
	trace->remote.is_bpf = true;
	return FAY_OK;
}

/* What needs all events on one machine, or the machine that has the processes. */
static int check(const struct trace *trace, struct fay_error *error)
{
	const struct fay_plan *plan = trace->plan;
	if (trace->native)
		return fay_error_set(error, FAY_E_REFUSED,
				     "probe images for the kernel cannot be sent to a cluster; a "
				     "query about it can");
	if (!fay_trace_is_kernel(trace) && !trace->comm_count && !trace->pid_count)
		return fay_error_set(error, FAY_E_USAGE,
				     "which processes? Give --comm NAME, or -p PID");
	if (fay_trace_is_kernel(trace) && trace->follow)
		return fay_error_set(error, FAY_E_USAGE,
				     "--follow is for queries about programs: on a cluster, query "
				     "the kernel without it, by `comm`");
	if (fay_trace_is_file(trace) || trace->save_path)
		return fay_error_set(error, FAY_E_USAGE,
				     "saved traces are files of this machine: leave out --cluster");
	if (trace->join && (plan->kernel_sides || trace->detach))
		return fay_error_set(
			error, FAY_E_REFUSED,
			trace->detach
				? "--detach does not support joins: the client makes the pairs"
				: "joins with kernel events are not supported on a cluster yet; "
				  "query each machine separately");
	if (trace->counted && (fay_trace_is_kernel(trace) || trace->detach))
		return fay_error_set(
			error, FAY_E_REFUSED,
			trace->detach ? "--detach does not support count-based windows: the client "
					"counts the events"
				      : "count-based windows of kernel events are not supported on "
					"a cluster yet; query each machine separately");
	if (trace->detach && trace->duration > FAY_STREAM_LIFE_MAX)
		return fay_error_set(error, FAY_E_USAGE,
				     "with --detach, --for is at most seven days: after that the "
				     "servers delete the query");
	if (plan && plan->inlined)
		return fay_error_set(error, FAY_E_REFUSED,
				     "`Inlined` is not supported on a cluster yet");
	if (plan && plan->extended && trace->detach)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"--detach does not support queries extended by C files: `fay attach` reads "
			"the query, and may run where these files do not exist");
	if (!plan || !plan->typed)
		return FAY_OK;
	if (trace->join)
		return fay_error_set(error, FAY_E_REFUSED,
				     "argument names in a join are not supported on a cluster yet: "
				     "use Arg(0), Arg(1) ...");
	if (!trace->described.found.file.build_id_size)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"the file that %s is in has no build ID, so other machines cannot tell "
			"whether theirs is the same: use Arg(0), Arg(1) ...",
			trace->described.found.pattern);
	return FAY_OK;
}

/* Addresses of code are told by name, in place of the addresses. */
static int set_codes(const struct trace *trace, struct fay_root_options *options,
		     struct fay_error *error)
{
	struct fay_plan_code codes[FAY_PLAN_CODES_MAX];
	const struct fay_plan *plan = trace->plan;
	_Static_assert(FAY_PLAN_CODES_MAX <= FAY_WIRE_CODES_MAX, "START has room for all");
	if (!plan)
		return FAY_OK;
	if (plan->joins && (plan->addresses || plan->walks_stacks))
		return fay_error_set(
			error, FAY_E_REFUSED,
			"stacks and callers in a join are not supported on a cluster yet");
	uint32_t count = plan->joins ? 0 : fay_plan_codes(plan, codes);
	if (!plan->joins && fay_plan_computes_codes(plan))
		return fay_error_set(error, FAY_E_REFUSED,
				     "code addresses differ between machines: on a cluster, stacks "
				     "and callers can only be group keys or columns");
	if (count && fay_schema_replaces(trace->schema))
		return fay_error_set(error, FAY_E_REFUSED,
				     "stacks and callers with TopK or Sample are not supported on "
				     "a cluster yet");
	for (uint32_t i = 0; i < count; i++) {
		if (fay_trace_is_kernel(trace) && !codes[i].kernel)
			return fay_error_set(
				error, FAY_E_REFUSED,
				"stacks of programs at kernel events are not supported on a "
				"cluster yet: use KernelStack, or stacks of cluster.Function(...)");
		options->codes[i] = (struct fay_wire_code){
			(uint16_t)codes[i].column,
			(uint8_t)((codes[i].exact ? FAY_CODE_EXACT : 0) |
				  (codes[i].kernel ? FAY_CODE_KERNEL : 0))
		};
	}
	options->code_count = (uint16_t)count;
	options->stacks = plan->walks_stacks;
	return FAY_OK;
}

/* Of a vendor's image, as they lie beside it: each machine asks for those that it needs. */
static int set_signatures(const struct trace *trace, struct fay_root_options *options,
			  struct fay_error *error)
{
	struct fay_trust_signatures signatures;
	_Static_assert(sizeof(signatures.at) == sizeof(options->signatures), "as START has them");
	if (!trace->probe_path)
		return FAY_OK;
	if (fay_trust_signatures_read(trace->probe_path, &signatures, error))
		return error->code;
	memcpy(options->signatures, signatures.at, sizeof(options->signatures));
	options->signature_count = (uint16_t)signatures.count;
	return FAY_OK;
}

static void set_options(struct trace *trace)
{
	struct fay_root_options *options = &trace->remote;
	options->text = trace->query ? trace->query : trace->probe_path;
	options->comms = trace->comms;
	options->comm_count = trace->comm_count;
	options->pids = trace->pids;
	options->pid_count = trace->pid_count;
	options->wait = trace->wait;
	options->follow = trace->follow;
	options->when_full = trace->plan ? trace->plan->when_full : FAY_FULL_BLOCK;
	options->named = trace->plan ? trace->plan->machine : NULL;
	options->some = trace->join != NULL;
	options->one_clock = trace->join || trace->counted;
	options->is_query = trace->query != NULL;
	options->durable = trace->detach;
	options->life = !trace->detach    ? 0
			: trace->duration ? trace->duration
					  : FAY_STREAM_LIFE_MAX;
	if (trace->detach && options->lease < DETACHED_LEASE)
		options->lease = DETACHED_LEASE;
	if (trace->plan && trace->plan->window_step)
		options->horizon = FAY_WINDOWS_HORIZON;
	if (trace->every)
		options->window = trace->every;
	if (trace->plan && trace->plan->typed && !fay_trace_is_kernel(trace)) {
		options->function = trace->described.found.pattern;
		options->build_id = trace->described.found.file.build_id;
		options->build_id_size = trace->described.found.file.build_id_size;
		options->path = trace->described.path;
	}
}

static int start(struct fay_cli_trace *cli, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	static struct fay_keys keys;
	if (check(trace, error) || fay_cli_cluster_keys(&cli->cluster, &keys, error))
		return error->code;
	set_options(trace);
	if (set_codes(trace, &trace->remote, error) || set_signatures(trace, &trace->remote, error))
		return error->code;
	trace->cluster_rows = trace->aggregator;
	if (fay_trace_is_kernel(trace) && make_object(trace, error))
		return error->code;
	return fay_root_create(&trace->remote, &keys, &trace->verdict, trace->image.data,
			       trace->image.size, trace->aggregator, &trace->root, error);
}

static void report_clocks(const struct trace *trace)
{
	for (size_t i = 0; trace->remote.horizon && i < fay_root_machine_count(trace->root); i++) {
		const struct fay_machine *machine = fay_root_machine(trace->root, i);
		if (machine->state != FAY_MACHINE_REFUSED && fay_root_is_astray(machine))
			fprintf(stderr,
				"fay: %s's clock is %" PRIu64
				" s behind this machine's: its events are in no window\n",
				machine->name, -(uint64_t)machine->event_clock / 1000000000u);
	}
}

static void report(const struct trace *trace)
{
	struct fay_coverage coverage;
	unsigned tracing = 0, processes = 0, refused = 0;
	for (size_t i = 0; i < fay_root_machine_count(trace->root); i++) {
		const struct fay_machine *machine = fay_root_machine(trace->root, i);
		if (machine->state == FAY_MACHINE_REFUSED &&
		    ++refused <= (trace->verbose ? UINT32_MAX : REFUSALS_SHOWN))
			fprintf(stderr, "fay: %s does not trace: %s\n", machine->name,
				machine->reason);
		if (machine->state != FAY_MACHINE_TRACING && machine->state != FAY_MACHINE_FINISHED)
			continue;
		tracing++;
		processes += machine->processes;
	}
	fay_root_coverage(trace->root, &coverage);
	if (coverage.beyond)
		fprintf(stderr,
			"fay: more than %u machines have answered; the others are NOT QUERIED "
			"(--machines FILE selects)\n",
			FAY_WIRE_AGENTS_MAX);
	if (coverage.other_version)
		fprintf(stderr,
			"fay: machines that use version %u of Fay's protocol are NOT QUERIED: this "
			"is version %u, and all machines need the same release\n",
			coverage.other_version, FAY_WIRE_VERSION);
	if (refused > REFUSALS_SHOWN && !trace->verbose)
		fprintf(stderr, "fay: %u more machines do not trace; --verbose names them\n",
			refused - REFUSALS_SHOWN);
	report_clocks(trace);
	if (fay_trace_is_kernel(trace)) {
		fprintf(stderr,
			"fay: tracing the kernel of %u machine%s of %zu through BPF; Ctrl-C ends\n",
			tracing, tracing == 1 ? "" : "s", fay_root_machine_count(trace->root));
		return;
	}
	fprintf(stderr, "fay: tracing %u process%s on %u machine%s of %zu; Ctrl-C ends\n",
		processes, processes == 1 ? "" : "es", tracing, tracing == 1 ? "" : "s",
		fay_root_machine_count(trace->root));
}

static void print_coverage_json(const struct trace *trace, const struct fay_coverage *coverage,
				bool final)
{
	FILE *out = trace->json;
	fprintf(out,
		"{\"type\":\"coverage\",\"final\":%s,\"asked\":%u,\"tracing\":%u,\"refused\":%u,"
		"\"late\":%u,\"lost\":%u,\"finished\":%u,"
		"\"incomplete\":%u,\"windows\":%" PRIu64 ",\"messages\":%" PRIu64
		",\"bytes\":%" PRIu64 ",\"hellos\":%" PRIu64 ",\"combined\":%" PRIu64
		",\"duplicates\":%" PRIu64 ",\"conflicts\":%" PRIu64 ",\"early\":%" PRIu64
		",\"unknown\":%" PRIu64 ",\"malformed\":%" PRIu64 ",\"rows_shed\":%" PRIu64
		",\"rows_late\":%" PRIu64 ",\"beyond_limit\":%s",
		final ? "true" : "false", coverage->asked, coverage->tracing, coverage->refused,
		coverage->late, coverage->lost, coverage->finished, coverage->incomplete,
		coverage->windows, coverage->messages, coverage->bytes, coverage->hellos,
		coverage->combined, coverage->duplicates, coverage->conflicts, coverage->early,
		coverage->unknown, coverage->malformed, coverage->rows_shed, coverage->rows_late,
		coverage->beyond ? "true" : "false");
	if (coverage->clock_error != UINT64_MAX)
		fprintf(out,
			",\"clock_offset_ns\":%" PRId64 ",\"clock_error_ns\":%" PRIu64
			",\"clock_bound_ns\":%" PRIu64 ",\"clocks_unknown\":%u",
			coverage->clock_offset, coverage->clock_error, coverage->clock_bound,
			coverage->clocks_unknown);
	fprintf(out, "}\n");
}

static void print_coverage(const struct trace *trace, bool final)
{
	struct fay_coverage coverage;
	fay_root_coverage(trace->root, &coverage);
	if (trace->json)
		print_coverage_json(trace, &coverage, final);
	if (!final)
		return;
	fprintf(stderr,
		"fay: %u machine%s queried, %u finished, %u refused, %u late, %u lost, %u "
		"incomplete; %" PRIu64 " messages, %" PRIu64 " duplicates, %" PRIu64
		" conflicts, %" PRIu64 " unknown, %" PRIu64 " malformed\n",
		coverage.asked, coverage.asked == 1 ? "" : "s", coverage.finished, coverage.refused,
		coverage.late, coverage.lost, coverage.incomplete, coverage.messages,
		coverage.duplicates, coverage.conflicts, coverage.unknown, coverage.malformed);
	if (coverage.rows_late)
		fprintf(stderr,
			"fay: %" PRIu64
			" rows came after their window was closed and are not in it\n",
			coverage.rows_late);
	report_clocks(trace);
	if (coverage.clock_error != UINT64_MAX)
		fprintf(stderr, "fay: clocks differ by %.3f ms at most (+- %.3f ms)\n",
			(double)coverage.clock_offset / 1e6, (double)coverage.clock_error / 1e6);
	if (trace->join || trace->counted)
		fprintf(stderr,
			"fay: times are by this machine's clock, each within +- %.3f ms%s\n",
			(double)coverage.clock_bound / 1e6,
			coverage.clocks_unknown
				? "; some machines' clocks could not be compared with it"
				: "");
	for (size_t i = 0; i < fay_root_machine_count(trace->root); i++) {
		const struct fay_machine *machine = fay_root_machine(trace->root, i);
		if (machine->lost ||
		    (machine->state == FAY_MACHINE_TRACING && final && !trace->detach))
			fprintf(stderr,
				"fay: %s (%016" PRIx64
				") was lost; its events are counted up to window %" PRIu64 "\n",
				machine->name, machine->id, machine->window);
	}
}

/* A picture of what is merged by now. */
int fay_cli_trace_cluster_draw(struct fay_cli_trace *cli, bool final, struct fay_result *last,
			       struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	int result = fay_trace_cluster_gather(trace, error);
	if (!result)
		result = fay_trace_draw(trace, final, last, error);
	fay_trace_cluster_gathered(trace);
	print_coverage(trace, final);
	return result;
}

static const char *reason_to_end(const struct trace *trace, uint64_t end)
{
	if (trace->interrupted)
		return "interrupted";
	if (end && fay_monotonic() >= end)
		return "time is up";
	if (trace->plan && trace->plan->deadline && fay_realtime() > trace->plan->deadline)
		return "the query's own deadline passed";
	if (fay_trace_has_all_rows(trace))
		return "the query has all its rows";
	if (fay_root_finished(trace->root))
		return "the traced programs ended";
	return NULL;
}

/* Events up to some time have come from all machines that are neither late nor lost. */
static void advance(struct trace *trace)
{
	uint64_t complete =
		trace->join || trace->counted ? fay_root_complete_until(trace->root) : UINT64_MAX;
	if (complete == UINT64_MAX)
		return;
	fay_trace_join_advance(trace, complete);
	fay_trace_counted_advance(trace, complete);
}

static int run(struct fay_cli_trace *cli, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	uint64_t now = fay_monotonic(), every = trace->remote.window, next = now + every;
	uint64_t end = trace->duration ? now + trace->duration : 0;
	bool pictures = trace->output.pictures || trace->every;
	while (!(trace->end_reason = reason_to_end(trace, end))) {
		if (fay_root_tick(trace->root, TICK_MS, error) ||
		    fay_trace_rows_error(trace, error) ||
		    fay_trace_windows_tick(trace, fay_realtime(), error))
			return error->code;
		advance(trace);
		bool over = fay_monotonic() >= next;
		if (!over && !(trace->output.pictures && fay_live_due))
			continue;
		fay_live_due = 0;
		next += over ? every : 0;
		if ((pictures && fay_cli_trace_cluster_draw(cli, false, NULL, error)) ||
		    fay_trace_check_output(trace, error))
			return error->code;
	}
	return FAY_OK;
}

static int detach(struct fay_cli_trace *cli, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	if (fay_root_detach(trace->root, error))
		return error->code;
	fprintf(stderr,
		"fay: the query continues%s; `fay attach %016" PRIx64 "` shows its result\n",
		trace->duration ? " for the time given"
				: " until `fay attach --stop`, for seven days at most",
		fay_root_query(trace->root));
	fprintf(cli->writer.out, "%016" PRIx64 "\n", fay_root_query(trace->root));
	return fay_trace_check_output(trace, error);
}

int fay_cli_trace_cluster(struct fay_cli_trace *cli, struct fay_error *error)
{
	struct trace *trace = &cli->trace;
	struct fay_result last = { 0 };
	struct fay_error second;
	if (start(cli, error))
		return error->code;
	report(trace);
	if (trace->detach)
		return detach(cli, error);
	trace->output.schema(trace->output.context, trace);
	fay_trace_check_output(trace, &second);
	int result = fay_trace_windows_start(trace, error);
	if (!result)
		result = run(cli, error);
	if (!trace->end_reason)
		trace->end_reason = "error";
	if (fay_root_stop(trace->root, &second) && !result) {
		*error = second;
		result = error->code;
	}
	if (fay_cli_trace_cluster_draw(cli, true, &last, &second) && !result) {
		*error = second;
		result = error->code;
	}
	fay_trace_print_end(trace, &last);
	fay_result_deinit(&last);
	if (!result)
		result = fay_trace_rows_error(trace, error);
	return result ? result : fay_trace_check_output(trace, error);
}
