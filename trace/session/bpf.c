/* SPDX-License-Identifier: MIT */
/* A query about the kernel, through BPF (docs/internals/bpf.md): nothing is installed in any
 * process. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/process/process.h"
#include "trace/kernel/kernel.h"

#include "session.h"

#define SKIPPED_SHOWN 5u
#define PROGRAMS_SHOWN 4u
#define LOOK_EVERY 100000000u      /* ns */
#define MAPPINGS_EVERY 1000000000u /* ns */

static int check_side(const struct trace *trace, unsigned side, struct fay_error *error)
{
	char text[FAY_BACK_END_SIZE];
	if (fay_plan_kernel_kind(trace->plan, side) == FAY_KERNEL_FUNCTIONS &&
	    !fay_kernel_bpf_functions())
		return fay_error_set(error, FAY_E_REFUSED,
				     "functions of the kernel cannot be traced here: %s",
				     fay_kernel_back_end(FAY_KERNEL_FUNCTIONS, text));
	if (!fay_bpf_knows_processes())
		return fay_error_set(error, FAY_E_REFUSED,
				     "fay runs in a PID namespace (a container), where process IDs "
				     "differ from those in kernel events");
	return FAY_OK;
}

int fay_trace_bpf_prepare(struct trace *trace, struct fay_error *error)
{
	bool here = !trace->remote.bus.url; /* else its agents say what they cannot do */
	for (unsigned side = 0; side < trace->plan->source_count; side++) {
		if (!(trace->plan->kernel_sides >> side & 1))
			continue;
		if (here && check_side(trace, side, error))
			return error->code;
		trace->bpf[trace->bpf_count++].side = side;
	}
	if (!fay_trace_is_kernel(trace))
		return FAY_OK; /* the schema is the image's */
	if (trace->plan->joins || trace->plan->window_events)
		fay_plan_sources_schema(trace->plan, &trace->kernel_schema);
	else
		fay_plan_schema(trace->plan, &trace->kernel_schema);
	if (!fay_plan_add_texts(trace->plan, &trace->kernel_schema))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	trace->schema = &trace->kernel_schema;
	trace->verdict.schema = trace->kernel_schema; /* what a root merges by */
	return FAY_OK;
}

/* A policy that was asked for holds for what the kernel runs, too. */
static int check_policy(struct trace *trace, struct fay_error *error)
{
	struct fay_policy policy;
	int result = !trace->policy_path ? FAY_OK
					 : fay_trust_policy_read(trace->policy_path, &policy,
								 trace->log.policy, error);
	for (size_t i = 0; trace->policy_path && !result && i < trace->bpf_count; i++)
		result = fay_bpf_check_policy(&trace->bpf[i].object, &policy, "the policy", error);
	return result;
}

int fay_trace_bpf_generate(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	int result = FAY_OK;
	/* `pids` are then also those that the name meant at the beginning */
	bool by_name = trace->comm_count && fay_trace_is_mixed(trace);
	struct fay_bpf_options options = {
		.not_self = true,
		.pids = trace->pids,
		.pid_count = by_name ? trace->pid_named : trace->pid_count,
		.follow = trace->follow,
		.tids = trace->tids,
		.tid_count = trace->tid_count,
		.comms = trace->comms,
		.comm_count = trace->comm_count,
	};
	for (size_t i = 0; !result && i < trace->bpf_count; i++) {
		options.side = trace->bpf[i].side;
		result = fay_plan_generate_bpf(trace->plan, &options, &trace->bpf[i].object, error);
		if (!trace->native_side) /* fay.ko has the system's clock */
			trace->bpf[i].object.values[FAY_BPF_VALUE_BOOT] = trace->epoch;
	}
	fay_trace_stage(trace, "generate BPF programs", since);
	return result ? result : check_policy(trace, error);
}

static void report_skipped(const struct trace *trace, const struct trace_bpf *bpf)
{
	uint32_t skipped = 0;
	for (uint32_t i = 0; i < bpf->object.program_count; i++) {
		const char *why = fay_bpf_session_skipped(bpf->session, i);
		if (why && (++skipped <= SKIPPED_SHOWN || trace->verbose))
			fprintf(trace->messages, "fay: not traced: %s: %s\n",
				bpf->object.programs[i].name, why);
	}
	if (skipped > SKIPPED_SHOWN && !trace->verbose)
		fprintf(trace->messages, "fay: not traced: %u more; --verbose names them\n",
			skipped - SKIPPED_SHOWN);
}

/* Tracepoints that come in another thread than that which they are about. */
static const struct {
	const char *glob, *where;
} elsewhere[] = {
	{ "tracepoint block_*_complete", "in whatever thread the disk's interrupt finds running" },
	{ "tracepoint irq_*", "in whatever thread the interrupt finds running" },
	{ "tracepoint softirq_*", "in whatever thread the interrupt finds running" },
	{ "tracepoint n*_receive_*", "in whatever thread the interrupt finds running" },
	{ "tracepoint sched_switch", "in the thread that leaves the processor (`prev`)" },
	{ "tracepoint sched_wak*", "in the thread that wakes another" },
};

/* That few of their events are those of processes that were named. */
static void report_elsewhere(const struct trace *trace, const char *program)
{
	if (!trace->pid_count && !trace->comm_count && !trace->command && !trace->tid_count)
		return;
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (!fnmatch(elsewhere[i].glob, program, 0))
			fprintf(trace->messages,
				"fay: %s comes %s, and is counted only if that is of the processes "
				"named; without any, a condition on a field of the event chooses\n",
				program, elsewhere[i].where);
}

static void report(const struct trace *trace)
{
	uint32_t shown = 0, more = 0, programs = 0, instructions = 0;
	for (size_t b = 0; b < trace->bpf_count; b++)
		report_skipped(trace, &trace->bpf[b]);
	fprintf(trace->messages, "fay: tracing the kernel through BPF: ");
	for (size_t b = 0; b < trace->bpf_count; b++) {
		const struct trace_bpf *bpf = &trace->bpf[b];
		for (uint32_t i = 0; i < bpf->object.program_count; i++) {
			if (fay_bpf_session_skipped(bpf->session, i))
				continue;
			if (shown == PROGRAMS_SHOWN)
				more++;
			else
				fprintf(trace->messages, "%s%s", shown++ ? ", " : "",
					bpf->object.programs[i].name);
		}
		programs += bpf->object.program_count;
		instructions += fay_bpf_session_instructions(bpf->session);
	}
	if (more)
		fprintf(trace->messages, " and %u more", more);
	fprintf(trace->messages, "%s\n", fay_trace_is_kernel(trace) ? "; Ctrl-C ends" : "");
	for (size_t b = 0; b < trace->bpf_count; b++)
		for (uint32_t i = 0; i < trace->bpf[b].object.program_count; i++)
			report_elsewhere(trace, trace->bpf[b].object.programs[i].name);
	if (trace->verbose)
		fprintf(trace->messages,
			"fay: %u BPF programs with %u instructions in total; the kernel's verifier "
			"accepted them\n",
			programs, instructions);
}

static int attach(struct trace *trace, struct trace_bpf *bpf, struct fay_error *error)
{
	size_t size;
	if (fay_bpf_session_create(&bpf->object, &bpf->session, error))
		return error->code;
	struct fay_shm_control *shm = fay_bpf_session_shm(bpf->session, &size);
	int result = fay_aggregator_add(trace->aggregator, shm, size, 0, error);
	return result ? result : fay_bpf_session_attach(bpf->session, error);
}

/* They are no image. */
static int log_programs(const struct trace *trace, struct fay_error *error)
{
	char text[1024];
	snprintf(text, sizeof(text), "the kernel, by BPF: query %.900s", trace->query);
	return fay_trust_log_install(&trace->log, text, error);
}

/* --- what addresses of programs are called: these are not attached to --- */

static bool shows_programs(const struct trace *trace)
{
	for (uint32_t c = 0; fay_trace_is_kernel(trace) && c < trace->plan->column_count; c++)
		if (trace->plan->columns[c].stack_frames && !trace->plan->columns[c].kernel_stack)
			return true;
	return false;
}

static void take_mappings(void *context, pid_t pid)
{
	struct trace *trace = context;
	fay_addresses_take(&trace->addresses, pid);
}

static bool has_a_name(const struct trace *trace, pid_t pid)
{
	char comm[FAY_COMM_SIZE];
	if (!trace->comm_count || !fay_process_name(pid, comm))
		return false;
	for (size_t i = 0; i < trace->comm_count; i++)
		if (!strcmp(comm, trace->comms[i]))
			return true;
	return false;
}

/*
 * Of processes that are named what they have mapped since, too. Of all others, of which there may
 * be thousands, each once.
 */
static void look_at_mappings(struct trace *trace)
{
	uint64_t now = fay_monotonic();
	bool all = trace->follow || (!trace->pid_count && !trace->comm_count);
	pid_t pid;
	if (!trace->shows_programs || now < trace->next_mappings)
		return;
	trace->next_mappings = now + MAPPINGS_EVERY;
	for (size_t i = 0; i < trace->pid_count; i++)
		take_mappings(trace, trace->pids[i]);
	uint64_t since = trace->mapped_since;
	trace->mapped_since = fay_ticks_now();
	DIR *proc = all || trace->comm_count ? opendir("/proc") : NULL;
	while (proc && fay_process_next(proc, &pid))
		if ((all && fay_process_start(pid) >= since) || has_a_name(trace, pid))
			take_mappings(trace, pid);
	if (proc)
		closedir(proc);
}

int fay_trace_bpf_attach(struct trace *trace, struct fay_error *error)
{
	int result;
	if ((result = fay_trace_check_processes(trace, error)) ||
	    (result = fay_trace_bpf_generate(trace, error)) ||
	    (result = fay_trust_log_begin(&trace->log, error)) ||
	    (result = log_programs(trace, error)))
		return result;
	trace->shows_programs = shows_programs(trace);
	look_at_mappings(trace);
	uint64_t since = fay_monotonic();
	for (size_t i = 0; i < trace->bpf_count; i++)
		if ((result = attach(trace, &trace->bpf[i], error)))
			return result;
	fay_trace_stage(trace, "load and attach", since);
	report(trace);
	if (trace->child && trace->shows_programs)
		fay_process_start_early(trace->child, take_mappings, trace);
	else if (trace->child && fay_trace_is_kernel(trace))
		kill(trace->child, SIGCONT);
	return FAY_OK;
}

struct taker {
	struct trace *trace;
	struct fay_error *error;
	uint32_t state;
	int result;
};

static bool take_row(void *context, const uint8_t *row, size_t size)
{
	struct taker *taker = context;
	if (fay_text_is_record(size) && taker->trace->texts) {
		fay_texts_take_record(taker->trace->texts, row, size);
		return true;
	}
	taker->result =
		fay_aggregator_take_row(taker->trace->aggregator, taker->state, row, taker->error);
	return !taker->result;
}

static void look_for_processors(const struct trace *trace, struct trace_bpf *bpf)
{
	uint32_t came = bpf->session ? fay_bpf_session_tick(bpf->session) : 0;
	if (came)
		fprintf(trace->messages,
			"fay: %u processor%s came online during this trace; up to %u ms of what "
			"ran there is missing\n",
			came, came == 1 ? "" : "s", FAY_BPF_CLOCKS_EVERY / 1000000u);
}

int fay_trace_bpf_poll(struct trace *trace, struct fay_error *error)
{
	for (size_t i = 0; i < trace->bpf_count; i++) {
		struct taker taker = { trace, error, trace->bpf[i].side, FAY_OK };
		look_for_processors(trace, &trace->bpf[i]);
		if (trace->bpf[i].session)
			fay_bpf_session_drain(trace->bpf[i].session, take_row, &taker);
		if (taker.result)
			return taker.result;
	}
	look_at_mappings(trace);
	return FAY_OK;
}

/* Once the command has ended, if there is one, it is looked now and then whether children of its
 * are left. */
static bool has_followed(struct trace *trace)
{
	uint64_t now = fay_monotonic();
	if (trace->child || now < trace->next_look)
		return true;
	trace->next_look = now + LOOK_EVERY;
	return fay_bpf_session_has_processes(trace->bpf[0].session);
}

bool fay_trace_bpf_goes_on(struct trace *trace)
{
	if (trace->follow && trace->pid_count)
		return has_followed(trace);
	if (trace->command)
		return trace->child != 0;
	for (size_t i = 0; i < trace->pid_count; i++)
		if (!kill(trace->pids[i], 0) || errno != ESRCH)
			return true;
	return !trace->pid_count || trace->comm_count; /* others of the name may come */
}

void fay_trace_bpf_detach(struct trace *trace)
{
	for (size_t i = 0; i < trace->bpf_count; i++)
		if (trace->bpf[i].session)
			fay_bpf_session_detach(trace->bpf[i].session);
}

void fay_trace_bpf_deinit(struct trace *trace)
{
	for (size_t i = 0; i < trace->bpf_count; i++) {
		fay_bpf_session_destroy(trace->bpf[i].session);
		fay_bpf_object_deinit(&trace->bpf[i].object);
	}
}

/* The programs of functions are named after these. */
const char *fay_trace_bpf_name(const struct trace *trace, uint64_t hash)
{
	const char *name = fay_plan_kernel_name(trace->plan, hash);
	for (size_t b = 0; !name && b < trace->bpf_count; b++) {
		const struct fay_bpf_object *object = &trace->bpf[b].object;
		for (uint32_t i = 0; !name && i < object->program_count; i++) {
			const char *space = strchr(object->programs[i].name, ' ');
			if (space && fay_name_hash(space + 1) == hash)
				name = space + 1;
		}
	}
	return name;
}
