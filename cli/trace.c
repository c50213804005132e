/* SPDX-License-Identifier: MIT */
/*
 * `fay trace`: the whole pipeline in one process. Query or vendor image -> image -> verifier -> loader -> aggregator -> output.
 *
 * Whatever ends a trace (Ctrl-C, --for, the query's own deadline, the targets' exit, a full disk under standard output), the end is the same: detach
 * from all targets, merge once more now that nothing can count any longer, print the final result and what was lost.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <llvm-c/Core.h>

#include "cli.h"

#define POLL_MS 5
#define DETACH_TRIES 5
#define SKIPPED_SHOWN 5
#define DEFAULT_EVERY 1000000000u

struct stage {
	const char *name;
	uint64_t nanoseconds;
};

struct trace {
	/* options */
	const char *query;
	const char *probe_path;
	const char *policy_path;
	char **command;
	uint64_t duration, every;
	bool timing, verbose, help;
	/* what is traced */
	pid_t pids[FAY_CLI_MAX_TARGETS];
	size_t pid_count;
	pid_t child; /* of `-- COMMAND`; 0 once it has ended */
	int child_status; /* wait status, valid if child_ended */
	bool child_ended;
	struct fay_target *targets[FAY_CLI_MAX_TARGETS];
	struct fay_session *sessions[FAY_CLI_MAX_TARGETS];
	size_t session_count;
	/* pipeline */
	struct fay_plan *plan;
	struct fay_buffer image;
	struct fay_verdict verdict;
	bool verified;
	struct fay_aggregator *aggregator;
	struct fay_view *views;
	size_t view_count;
	struct fay_writer writer;
	/* bookkeeping */
	uint64_t started; /* monotonic ns at main */
	struct stage stages[16];
	size_t stage_count;
	const char *end_reason;
	char reason[256]; /* where end_reason is made up */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static void stage_done(struct trace *trace, const char *name, uint64_t since)
{
	if (trace->stage_count < sizeof(trace->stages) / sizeof(trace->stages[0]))
		trace->stages[trace->stage_count++] =
			(struct stage){ name, fay_cli_monotonic() - since };
}

static const char usage_text[] =
	"usage: fay trace [-p PID | --comm NAME] [--for 10s] [--every 1s] [--json | --csv]\n"
	"                 [--timing] [--verbose] [--policy FILE] ('QUERY' | --probe IMAGE) [-- COMMAND...]\n";

static int usage(const char *message)
{
	if (message)
		fprintf(stderr, "fay trace: %s\n", message);
	fputs(usage_text, stderr);
	return FAY_E_USAGE;
}

static void print_help(void)
{
	fputs(usage_text, stdout);
	printf("\n"
	       "  -p, --pid PID    a process; may be given several times\n"
	       "  --comm NAME      all processes of that name\n"
	       "  -- COMMAND       start a program and trace it from the start\n"
	       "  --for T          end after T, such as 10s, 500ms, 2m\n"
	       "  --every T        print the result so far each T\n"
	       "  --json, --csv    for other programs to read\n"
	       "  --probe IMAGE    a probe image, made by `fay cc` or a vendor, instead of a query\n"
	       "  --policy FILE    limits and permissions for the probe (docs/policy.md)\n"
	       "  --timing         how long each stage took, on standard error\n"
	       "  -v, --verbose    the verifier's report, on standard error\n");
}

/* --- options ---------------------------------------------------------------------------------------- */

static int add_pid(struct trace *trace, const char *text)
{
	char *end;
	errno = 0;
	long pid = strtol(text, &end, 10);
	if (errno || *end || end == text || pid <= 0 || pid > INT32_MAX) {
		fprintf(stderr, "fay trace: '%s' is not a process id\n", text);
		return FAY_E_USAGE;
	}
	if (trace->pid_count == FAY_CLI_MAX_TARGETS) {
		fprintf(stderr, "fay trace: more than %u processes\n", FAY_CLI_MAX_TARGETS);
		return FAY_E_LIMIT;
	}
	trace->pids[trace->pid_count++] = (pid_t)pid;
	return FAY_OK;
}

static int add_comm(struct trace *trace, const char *comm)
{
	size_t room = FAY_CLI_MAX_TARGETS - trace->pid_count;
	size_t found = fay_cli_find_comm(comm, trace->pids + trace->pid_count, room);
	if (!found) {
		fprintf(stderr, "fay trace: no process is named '%s'\n", comm);
		return FAY_E_REFUSED;
	}
	if (found > room) {
		fprintf(stderr, "fay trace: more than %u processes\n", FAY_CLI_MAX_TARGETS);
		return FAY_E_LIMIT;
	}
	trace->pid_count += found;
	return FAY_OK;
}

static int set_duration(const char *name, const char *text, uint64_t *value)
{
	if (fay_cli_duration(text, value) && *value)
		return FAY_OK;
	fprintf(stderr, "fay trace: %s wants a duration such as 10s or 500ms, not '%s'\n", name,
		text);
	return FAY_E_USAGE;
}

static int parse_option(struct trace *trace, int option)
{
	switch (option) {
	case 'p':
		return add_pid(trace, optarg);
	case 'c':
		return add_comm(trace, optarg);
	case 'f':
		return set_duration("--for", optarg, &trace->duration);
	case 'e':
		return set_duration("--every", optarg, &trace->every);
	case 'j':
	case 'C':
		if (trace->writer.format != FAY_FORMAT_TABLE)
			return usage("--json or --csv, one of them");
		trace->writer.format = option == 'j' ? FAY_FORMAT_JSON : FAY_FORMAT_CSV;
		return FAY_OK;
	case 'P':
		trace->probe_path = optarg;
		return FAY_OK;
	case 'o':
		trace->policy_path = optarg;
		return FAY_OK;
	case 't':
		trace->timing = true;
		return FAY_OK;
	case 'v':
		trace->verbose = true;
		return FAY_OK;
	case 'h':
		trace->help = true;
		return FAY_OK;
	}
	return usage(NULL);
}

static int parse_arguments(struct trace *trace, int argc, char **argv)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, 'p' },    { "comm", required_argument, NULL, 'c' },
		{ "for", required_argument, NULL, 'f' },    { "every", required_argument, NULL, 'e' },
		{ "json", no_argument, NULL, 'j' },	    { "csv", no_argument, NULL, 'C' },
		{ "probe", required_argument, NULL, 'P' },  { "timing", no_argument, NULL, 't' },
		{ "policy", required_argument, NULL, 'o' }, { "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },	    { 0 },
	};
	/* What follows `--` is the command, whatever it looks like. */
	int own = argc;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			trace->command = argv + i + 1;
			own = i;
			break;
		}
	}
	int option, result;
	optind = 1;
	while ((option = getopt_long(own, argv, "p:vh", options, NULL)) != -1) {
		if ((result = parse_option(trace, option)))
			return result;
		if (trace->help)
			return FAY_OK;
	}
	if (optind < own && !trace->probe_path)
		trace->query = argv[optind++];
	if (optind < own)
		return usage("one query, in one argument (quote it)");
	if (!trace->query && !trace->probe_path)
		return usage("a query or --probe IMAGE is missing");
	if (trace->command && !trace->command[0])
		return usage("no command after --");
	if (trace->command && trace->pid_count)
		return usage("either running processes or a command, not both");
	if (!trace->command && !trace->pid_count)
		return usage("which process? Give -p PID, --comm NAME, or -- COMMAND");
	return FAY_OK;
}

/* --- query or file to an accepted image --------------------------------------------------------------- */

static int plan_query(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_cli_monotonic();
	if (fay_query_plan(trace->query, fay_cli_realtime(), &trace->plan, error))
		return error->code;
	stage_done(trace, "parse and plan", since);
	return FAY_OK;
}

static int compile_plan(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_cli_monotonic();
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;
	int result = fay_plan_generate(trace->plan, context, &module, error);
	stage_done(trace, "generate IR", since);
	since = fay_cli_monotonic();
	if (!result) {
		struct fay_compile_options options = { .size = sizeof(options) };
		result = fay_compile_module(module, &trace->plan->spec, &options, &trace->image,
					    error);
	}
	LLVMContextDispose(context);
	stage_done(trace, "guard and compile", since);
	return result;
}

static int read_image(struct trace *trace, struct fay_error *error)
{
	const char *path = trace->probe_path;
	FILE *file = fopen(path, "re");
	struct stat stat;
	if (!file || fstat(fileno(file), &stat)) {
		int code = errno;
		if (file)
			fclose(file);
		return fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s", path, strerror(code));
	}
	if (!S_ISREG(stat.st_mode) || stat.st_size > (off_t)FAY_IMAGE_MAX_FILE) {
		fclose(file);
		return fay_error_set(error, FAY_E_REFUSED, "'%s' is not a probe image: %s", path,
				     S_ISREG(stat.st_mode) ? "too large" : "not a regular file");
	}
	trace->image.size = (size_t)stat.st_size;
	trace->image.data = malloc(trace->image.size + 1);
	size_t got = trace->image.data ? fread(trace->image.data, 1, trace->image.size, file) : 0;
	fclose(file);
	if (got != trace->image.size)
		return fay_error_set(error, FAY_E_INTERNAL, "cannot read '%s'", path);
	return FAY_OK;
}

static int verify_image(struct trace *trace, struct fay_error *error)
{
	struct fay_policy policy;
	char message[512];
	fay_policy_default(&policy);
	if (trace->policy_path &&
	    fay_policy_read(trace->policy_path, &policy, message, sizeof(message)))
		return fay_error_set(error, FAY_E_USAGE, "%s", message);
	uint64_t since = fay_cli_monotonic();
	fay_verify(trace->image.data, trace->image.size, &policy, &trace->verdict);
	trace->verified = true;
	stage_done(trace, "verify", since);
	const char *name = trace->probe_path ? trace->probe_path : "query";
	if (trace->verdict.outcome != FAY_ACCEPTED) {
		fay_verdict_print(stderr, name, &trace->verdict);
		return fay_error_set(error,
				     trace->verdict.outcome == FAY_EXHAUSTED ? FAY_E_LIMIT :
									       FAY_E_REFUSED,
				     "the probe was refused by the verifier (%s); nothing was installed",
				     fay_rule_id(trace->verdict.rejection.rule));
	}
	if (trace->verbose)
		fay_verdict_print(stderr, name, &trace->verdict);
	return FAY_OK;
}

/* --- views -------------------------------------------------------------------------------------------- */

static int view_of_state(struct trace *trace, uint32_t index, struct fay_view *view)
{
	const struct fay_schema *schema = &trace->verdict.schema;
	const struct fay_schema_state *state = &schema->states[index];
	view->state = index;
	view->streams = state->kind == FAY_STATE_STREAM;
	view->title = trace->plan ? NULL : state->name;
	view->column_count = trace->plan ? trace->plan->column_count :
					   (uint32_t)state->keys + state->values;
	view->columns = calloc(view->column_count + 1u, sizeof(*view->columns));
	if (!view->columns)
		return FAY_E_LIMIT;
	for (uint32_t c = 0; c < view->column_count; c++) {
		uint32_t position = c;
		if (trace->plan) {
			const struct fay_plan_column *column = &trace->plan->columns[c];
			position = column->index;
			if (column->source == FAY_PLAN_VALUE)
				position += state->keys;
		}
		view->columns[c].column = &schema->columns[state->first_column + position];
		view->columns[c].name = trace->plan ? trace->plan->columns[c].name :
						      view->columns[c].column->name;
	}
	return FAY_OK;
}

static int make_views(struct trace *trace, struct fay_error *error)
{
	trace->view_count = trace->plan ? 1 : trace->verdict.schema.state_count;
	trace->views = calloc(trace->view_count + 1, sizeof(*trace->views));
	for (size_t i = 0; trace->views && i < trace->view_count; i++) {
		if (view_of_state(trace, (uint32_t)i, &trace->views[i]))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	return trace->views ? FAY_OK : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

/* --- attach ------------------------------------------------------------------------------------------- */

static int attach_one(struct trace *trace, pid_t pid, struct fay_error *error)
{
	size_t index = trace->session_count;
	struct fay_attach_options options = { .size = sizeof(options) };
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

static void report_points(const struct trace *trace)
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
static int attach_all(struct trace *trace, struct fay_error *error)
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
	stage_done(trace, "find and attach", since);
	if (!trace->session_count)
		return error->code ? (int)error->code : FAY_E_REFUSED;
	if (trace->child)
		kill(trace->child, SIGCONT);
	return FAY_OK;
}

static const char *lookup_name(void *context, uint64_t hash)
{
	const struct trace *trace = context;
	for (size_t i = 0; i < trace->session_count; i++) {
		const char *name = fay_target_function_name(trace->targets[i], hash);
		if (name)
			return name;
	}
	return NULL;
}

/* --- run ---------------------------------------------------------------------------------------------- */

static void on_row(void *context, uint32_t state, const uint8_t *row)
{
	struct trace *trace = context;
	for (size_t i = 0; i < trace->view_count; i++) {
		if (trace->views[i].state == state)
			fay_write_row(&trace->writer, &trace->views[i], row);
	}
}

static bool targets_alive(struct trace *trace)
{
	if (trace->child && waitpid(trace->child, &trace->child_status, WNOHANG) == trace->child) {
		trace->child = 0;
		trace->child_ended = true;
	}
	for (size_t i = 0; i < trace->session_count; i++) {
		if (fay_session_target_alive(trace->sessions[i]))
			return true;
	}
	return false;
}

static int errno_of_output; /* of the first write that failed */

/* Whether standard output took everything so far. */
static int check_output(struct trace *trace, struct fay_error *error)
{
	if (!fflush(trace->writer.out) && !ferror(trace->writer.out))
		return FAY_OK;
	if (!errno_of_output)
		errno_of_output = errno;
	return fay_error_set(error, FAY_E_INTERNAL, "cannot write the result: %s",
			     strerror(errno_of_output));
}

static int draw(struct trace *trace, bool final, struct fay_result *last, struct fay_error *error)
{
	fay_write_restart(&trace->writer);
	for (size_t i = 0; i < trace->view_count; i++) {
		struct fay_result result;
		if (fay_aggregator_snapshot(trace->aggregator, trace->views[i].state, &result, error))
			return error->code;
		if (!trace->views[i].streams)
			fay_write_result(&trace->writer, &trace->views[i], &result, final);
		if (last) {
			fay_result_deinit(last);
			*last = result;
		} else {
			fay_result_deinit(&result);
		}
	}
	if (check_output(trace, error))
		return error->code;
	return FAY_OK;
}

/* Whether any event was counted yet, for --timing. */
static bool any_event(struct trace *trace)
{
	for (size_t i = 0; i < trace->session_count; i++) {
		size_t size;
		const struct fay_shm_control *shm = fay_session_shm(trace->sessions[i], &size);
		if (!__atomic_load_n(&shm->slot_next, __ATOMIC_RELAXED))
			continue;
		for (size_t v = 0; v < trace->view_count; v++) {
			struct fay_result result;
			struct fay_error error;
			if (fay_aggregator_snapshot(trace->aggregator, trace->views[v].state,
						    &result, &error))
				continue;
			bool any = false;
			for (size_t b = 0; b < result.row_count * result.row_size && !any; b++)
				any = result.rows[b] != 0;
			fay_result_deinit(&result);
			if (any)
				return true;
		}
	}
	return false;
}

/*
 * Whether a process is there and runs a program. One that is ending gives up its memory before it becomes a zombie; it then has no
 * executable any more (proc(5), /proc/pid/exe).
 */
static bool process_runs(pid_t pid, char comm[FAY_COMM_SIZE + 1])
{
	char path[64], link[2], state = 'Z';
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (readlink(path, link, sizeof(link)) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%16[^)]) %c", comm, &state) != 2)
		state = 'Z';
	fclose(file);
	return state != 'Z' && state != 'X';
}

/* All targets are gone: how the command ended, or that a process goes on as another program. */
static const char *how_targets_ended(struct trace *trace)
{
	char comm[FAY_COMM_SIZE + 1] = "";
	for (size_t i = 0; i < trace->session_count; i++) {
		pid_t pid = fay_target_pid(trace->targets[i]);
		if ((trace->child_ended && !trace->child) || !process_runs(pid, comm))
			continue;
		snprintf(trace->reason, sizeof(trace->reason),
			 "process %d replaced its program (execve) and is now '%s', which is not traced",
			 pid, comm);
		return trace->reason;
	}
	if (!trace->child_ended)
		return "the traced program ended";
	if (WIFSIGNALED(trace->child_status))
		snprintf(trace->reason, sizeof(trace->reason),
			 "the traced program ended: killed by SIG%s",
			 sigabbrev_np(WTERMSIG(trace->child_status)) ?: "?");
	else
		snprintf(trace->reason, sizeof(trace->reason),
			 "the traced program ended with exit status %d",
			 WEXITSTATUS(trace->child_status));
	return trace->reason;
}

static const char *reason_to_end(struct trace *trace, uint64_t end)
{
	if (interrupted)
		return "interrupted";
	if (end && fay_cli_monotonic() >= end)
		return "time is up";
	if (trace->plan && trace->plan->deadline && fay_cli_realtime() > trace->plan->deadline)
		return "the query's own deadline passed";
	if (!targets_alive(trace)) {
		/* A child of ours that is ending has given up its memory a moment before it can be waited for. */
		for (int i = 0; i < 100 && trace->child && !targets_alive(trace); i++)
			usleep(1000);
		return how_targets_ended(trace);
	}
	return NULL;
}

static int run(struct trace *trace, struct fay_error *error)
{
	uint64_t now = fay_cli_monotonic();
	uint64_t end = trace->duration ? now + trace->duration : 0;
	uint64_t every = trace->every ? trace->every : DEFAULT_EVERY;
	bool pictures = trace->writer.live || trace->every;
	uint64_t next = now + every;
	bool waiting_first = trace->timing;
	while (!(trace->end_reason = reason_to_end(trace, end))) {
		fay_aggregator_wait(trace->aggregator, waiting_first ? 1 : POLL_MS);
		for (size_t i = 0; i < trace->session_count; i++)
			fay_session_tick(trace->sessions[i]);
		if (fay_aggregator_poll(trace->aggregator, error) < 0)
			return error->code;
		if (waiting_first && any_event(trace)) {
			stage_done(trace, "first event", now);
			stage_done(trace, "start to first event", trace->started);
			waiting_first = false;
		}
		if (fay_cli_monotonic() < next)
			continue;
		next += every;
		if (pictures && draw(trace, false, NULL, error))
			return error->code;
		if (check_output(trace, error))
			return error->code;
	}
	return FAY_OK;
}

/* --- end ---------------------------------------------------------------------------------------------- */

/*
 * A target that cannot be stopped just now (a debugger holds it, a vfork lasts) is tried again. If it stays so, it is said which process is
 * still patched; its probes go on counting into memory that nobody reads.
 */
static int detach_all(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_cli_monotonic();
	int result = FAY_OK;
	for (size_t i = 0; i < trace->session_count; i++) {
		struct fay_error one;
		int tries = 0;
		while (fay_session_detach(trace->sessions[i], &one) && ++tries < DETACH_TRIES)
			usleep(200000);
		if (tries < DETACH_TRIES)
			continue;
		result = fay_error_set(error, FAY_E_INTERNAL,
				       "process %d is STILL PATCHED (it runs correctly; `fay doctor` lists it): %s",
				       fay_target_pid(trace->targets[i]), one.message);
		fprintf(stderr, "fay: %s\n", error->message);
	}
	stage_done(trace, "detach", since);
	return result;
}

/* Slots that forked children took: their calls are not part of the result. */
static size_t child_slots(const struct trace *trace)
{
	size_t count = 0;
	for (size_t i = 0; i < trace->session_count; i++) {
		size_t size;
		const struct fay_shm_control *shm = fay_session_shm(trace->sessions[i], &size);
		if (!shm || size < sizeof(*shm))
			continue;
		uint64_t stride = shm->slot_stride, offset = shm->slots_offset, used = shm->slot_next;
		for (uint64_t s = 0; s < used && s < shm->slot_max; s++, offset += stride) {
			if (stride < FAY_SLOT_HEADER || offset > size - FAY_SLOT_HEADER || offset % 8)
				break; /* the target wrote over its control page */
			const struct fay_slot_header *slot =
				(const void *)((const char *)shm + offset);
			count += slot->pid && slot->pid != shm->target_pid;
		}
	}
	return count;
}

static void print_end(struct trace *trace, const struct fay_result *result)
{
	size_t children = child_slots(trace);
	uint64_t lost = result->events_lost_reentrant + result->events_lost_full +
			result->events_lost_no_slot + result->calls_lost;
	if (trace->writer.format == FAY_FORMAT_JSON) {
		fprintf(trace->writer.out, "{\"type\":\"end\",\"reason\":");
		fay_json_string(trace->writer.out, trace->end_reason, strlen(trace->end_reason));
		fprintf(trace->writer.out,
			",\"threads\":%u,\"events_lost\":%" PRIu64
			",\"lost_reentrant\":%" PRIu64 ",\"lost_full\":%" PRIu64
			",\"lost_no_slot\":%" PRIu64 ",\"lost_calls\":%" PRIu64 ",\"child_threads_not_counted\":%zu}\n",
			result->threads, lost, result->events_lost_reentrant, result->events_lost_full,
			result->events_lost_no_slot, result->calls_lost, children);
	}
	fprintf(stderr, "fay: %s; %u thread%s counted, %" PRIu64 " event%s lost", trace->end_reason,
		result->threads, result->threads == 1 ? "" : "s", lost, lost == 1 ? "" : "s");
	if (lost)
		fprintf(stderr, " (%" PRIu64 " reentrant, %" PRIu64 " table or ring full, %" PRIu64
			" no thread slot, %" PRIu64 " returns of calls too deep)",
			result->events_lost_reentrant, result->events_lost_full,
			result->events_lost_no_slot, result->calls_lost);
	fprintf(stderr, "\n");
	if (children)
		fprintf(stderr,
			"fay: %zu thread%s of forked children called traced functions too; they are not counted\n",
			children, children == 1 ? "" : "s");
}

static void print_timing(const struct trace *trace)
{
	if (!trace->timing)
		return;
	fprintf(stderr, "fay: timing\n");
	for (size_t i = 0; i < trace->stage_count; i++)
		fprintf(stderr, "  %-24s %9.3f ms\n", trace->stages[i].name,
			(double)trace->stages[i].nanoseconds / 1e6);
	for (uint32_t i = 0; trace->session_count && i < trace->verdict.probe_count; i++) {
		bool unguarded;
		uint32_t bytes = fay_session_inlined(trace->sessions[0], i, &unguarded);

		if (bytes)
			fprintf(stderr, "  probe %u: inlined into the trampoline, %u bytes%s\n", i, bytes,
				unguarded ? "; needs no guard against reentrance" : "");
		else
			fprintf(stderr, "  probe %u: called from the trampoline\n", i);
	}
	uint64_t pause = 0;
	for (size_t i = 0; i < trace->session_count; i++) {
		uint64_t one = fay_session_longest_pause(trace->sessions[i]);
		pause = one > pause ? one : pause;
	}
	fprintf(stderr, "  %-24s %9.3f ms\n", "longest pause of target", (double)pause / 1e6);
}

/* Detaches first in every case; then the last picture, if the output still takes it. */
static int finish(struct trace *trace, int result, struct fay_error *error)
{
	struct fay_result last = { 0 };
	struct fay_error detach_error;
	int detached = detach_all(trace, &detach_error);
	for (size_t i = 0; i < trace->session_count; i++)
		fay_session_run(trace->sessions[i], FAY_PROBE_END);
	if (!trace->end_reason)
		trace->end_reason = "error";
	int drawn = FAY_OK;
	struct fay_error second, third;
	/* One thread's damaged ring does not keep the others' results from being shown. */
	if (fay_aggregator_poll(trace->aggregator, &second) < 0)
		drawn = second.code;
	if (draw(trace, true, &last, &third) && !drawn) {
		second = third;
		drawn = second.code;
	}
	if (!drawn || !result)
		print_end(trace, &last);
	if (!result && drawn) {
		*error = second;
		result = drawn;
	}
	if (!result)
		result = check_output(trace, error);
	fay_result_deinit(&last);
	print_timing(trace);
	if (!result && detached) {
		*error = detach_error;
		result = detached;
	}
	return result;
}

static void deinit(struct trace *trace)
{
	/* The aggregator says good-bye in the sessions' shared memory. */
	fay_aggregator_destroy(trace->aggregator);
	for (size_t i = 0; i < trace->session_count; i++)
		fay_session_destroy(trace->sessions[i]);
	for (size_t i = 0; i < trace->session_count; i++)
		fay_target_close(trace->targets[i]);
	for (size_t i = 0; trace->views && i < trace->view_count; i++)
		free(trace->views[i].columns);
	free(trace->views);
	if (trace->verified)
		fay_verdict_deinit(&trace->verdict);
	fay_buffer_deinit(&trace->image);
	if (trace->plan)
		fay_plan_destroy(trace->plan);
}

static int prepare(struct trace *trace, struct fay_error *error)
{
	int result;
	if (trace->query) {
		if ((result = plan_query(trace, error)) || (result = compile_plan(trace, error)))
			return result;
	} else if ((result = read_image(trace, error))) {
		return result;
	}
	if ((result = verify_image(trace, error)) || (result = make_views(trace, error)))
		return result;
	if ((result = fay_aggregator_create(&trace->verdict.schema, &trace->aggregator, error)))
		return result;
	fay_aggregator_on_row(trace->aggregator, on_row, trace);
	if (trace->command) {
		if ((result = fay_cli_spawn(trace->command, &trace->child, error)))
			return result;
		trace->pids[trace->pid_count++] = trace->child;
	}
	return FAY_OK;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	struct sigaction old;
	if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN) /* nohup */
		sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int fay_trace_main(int argc, char **argv)
{
	static struct trace trace; /* large; one a process */
	struct fay_error error = { 0 };
	trace.started = fay_cli_monotonic();
	trace.writer.out = stdout;
	trace.writer.function_name = lookup_name;
	trace.writer.name_context = &trace;
	int result = parse_arguments(&trace, argc, argv);
	if (result)
		return result;
	if (trace.help) {
		print_help();
		return FAY_OK;
	}
	trace.writer.live = trace.writer.format == FAY_FORMAT_TABLE && isatty(STDOUT_FILENO);
	catch_signals();
	result = prepare(&trace, &error);
	if (!result) {
		result = attach_all(&trace, &error);
		if (result && trace.child)
			kill(trace.child, SIGKILL);
		if (!result) {
			report_points(&trace);
			fay_write_schema(&trace.writer, trace.query, trace.views, trace.view_count);
			result = finish(&trace, run(&trace, &error), &error);
		}
	}
	deinit(&trace);
	if (result && errno_of_output == EPIPE)
		return FAY_OK; /* who read our output has had enough, as with `| head -1` */
	return result ? fay_cli_fail(&error) : FAY_OK;
}
