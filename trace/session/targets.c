/* SPDX-License-Identifier: MIT */
/* The processes that a trace attaches to. */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/suggest/suggest.h"
#include "session.h"

#define SKIPPED_SHOWN 5
#define LATER_SHOWN 20u
#define REST_ROUNDS 10u

/* What was found by its name may have ended since. */
int fay_trace_check_processes(const struct trace *trace, struct fay_error *error)
{
	size_t count = fay_trace_is_kernel(trace) ? trace->pid_count : trace->pid_named;
	for (size_t i = 0; i < count; i++)
		if (kill(trace->pids[i], 0) && errno == ESRCH)
			return fay_error_set(error, FAY_E_REFUSED, "there is no process %d",
					     trace->pids[i]);
	return FAY_OK;
}

bool fay_trace_names(const struct trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->pid_count; i++)
		if (trace->pids[i] == pid)
			return true;
	return false;
}

bool fay_trace_counts_children(const struct trace *trace, pid_t pid)
{
	bool numbered = false;
	for (size_t i = 0; i < trace->pid_named; i++)
		numbered |= trace->pids[i] == pid;
	return trace->follow || (fay_trace_is_by_name(trace) && !trace->no_follow && !numbered);
}

size_t fay_trace_find_named(const struct trace *trace, pid_t *pids, size_t max)
{
	size_t count = 0;
	if (fay_selection_is_given(&trace->select))
		return fay_selection_find(&trace->select, pids, max);
	for (size_t i = 0; i < trace->comm_count; i++) {
		size_t room = count < max ? max - count : 0;
		count += fay_process_find_comm(trace->comms[i], pids + (max - room), room);
	}
	return count;
}

int fay_trace_select(struct trace *trace, struct fay_error *error)
{
	struct fay_selection *select = &trace->select;
	pid_t pids[FAY_TARGETS_MAX];
	if (!fay_selection_is_given(select))
		return FAY_OK;
	select->comms = trace->comms;
	select->comm_count = trace->comm_count;
	trace->comm_count = 0;
	if (fay_selection_init(select, error))
		return error->code;
	size_t count = fay_selection_find(select, pids, FAY_TARGETS_MAX);
	if (!count && !trace->wait)
		return fay_error_set(
			error, FAY_E_REFUSED, "no process has all of%s%s%s%s%s%s%s",
			select->comm_count ? " --comm" : "", select->user ? " --user " : "",
			select->user ? select->user : "", select->cgroup ? " --cgroup " : "",
			select->cgroup ? select->cgroup : "", select->cmdline ? " --cmdline " : "",
			select->cmdline ? select->cmdline : "");
	for (size_t i = 0; i < count; i++) {
		if (i < FAY_TARGETS_MAX && fay_trace_names(trace, pids[i]))
			continue;
		if (i >= FAY_TARGETS_MAX || trace->pid_count == FAY_TARGETS_MAX)
			return fay_error_set(error, FAY_E_LIMIT, "more than %u processes",
					     FAY_TARGETS_MAX);
		trace->pids[trace->pid_count++] = pids[i];
		trace->selected++;
	}
	return FAY_OK;
}

int fay_trace_add_process(struct trace *trace, const struct fay_query_process *process,
			  struct fay_error *error)
{
	if (trace->pid_count || trace->comm_count || trace->command || trace->tid_count)
		return fay_error_set(
			error, FAY_E_USAGE,
			"the query names its process: leave out -p, --comm, --tid and the command");
	if (process->comm)
		trace->comms[trace->comm_count++] = process->comm;
	else
		trace->pids[trace->pid_count++] = process->pid;
	return FAY_OK;
}

int fay_trace_check_machine(const struct trace *trace, const char *machine, struct fay_error *error)
{
	char name[256] = "", first[256];
	if (trace->remote.bus.url)
		return FAY_OK; /* agents say what they are called */
	gethostname(name, sizeof(name) - 1);
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(name, "."), name);
	if (!fnmatch(machine, name, 0) || !fnmatch(machine, first, 0))
		return FAY_OK;
	return fay_error_set(error, FAY_E_REFUSED,
			     "the query is about machine(\"%s\"), and this machine is named '%s'; "
			     "query other machines with --cluster",
			     machine, name);
}

/* `traps` more of them than before. */
static void say_later(struct trace *trace, const struct fay_session *session, pid_t pid,
		      size_t traps)
{
	size_t points = fay_session_point_count(session);
	trace->new_points += points;
	points += traps;
	if (++trace->later > LATER_SHOWN && !trace->verbose)
		return;
	fprintf(trace->messages, "fay: tracing %zu function%s %s process %d%s\n", points,
		points == 1 ? "" : "s", "more, in", pid,
		trace->later == LATER_SHOWN && !trace->verbose
			? "; --verbose names those that follow"
			: "");
}

bool fay_trace_has_our_numbers(pid_t pid)
{
	char path[64];
	struct stat ours, its;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &ours) && !stat(path, &its) &&
	       ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

/* What events of the program and of the kernel are joined by has to mean the same in both. In doubt
 * whatever reads such a number joins by it. */
static int check_numbers(const struct trace *trace, pid_t pid, struct fay_error *error)
{
	uint32_t fields = 0;
	for (uint32_t i = 0; i < trace->verdict.probe_count; i++)
		fields |= trace->verdict.probes[i].event_fields;
	if (!fay_trace_is_mixed(trace) || !(fields & (FAY_FIELD_PID | FAY_FIELD_TID)) ||
	    fay_trace_has_our_numbers(pid))
		return FAY_OK;
	return fay_error_set(error, FAY_E_REFUSED,
			     "process %d is in another PID namespace (a container): `pid` and "
			     "`tid` in its events are those of the namespace, in kernel events "
			     "those of the machine, so these events cannot be joined",
			     pid);
}

/* The last session's, with what its probes walk stacks by. */
static int attach_session(struct trace *trace, struct fay_target *target,
			  struct fay_attach_options *options, bool later, struct fay_error *error)
{
	struct fay_stack_tables *tables;
	size_t index = trace->session_count;
	if (trace->plan && trace->plan->typed &&
	    fay_described_check(&trace->described.found, target, error))
		return error->code;
	if (check_numbers(trace, fay_target_pid(target), error) ||
	    fay_trace_stacks_make(trace, target, options, &tables, error))
		return error->code;
	if (fay_session_attach(target, &trace->verdict, options, &trace->sessions[index], error)) {
		if (!later) /* what comes later and has nothing of it is passed over in silence */
			fay_suggest(target, error);
		free(tables);
		return error->code;
	}
	trace->targets[index] = target;
	trace->stack_tables[index] = tables;
	trace->session_count++;
	return FAY_OK;
}

/* Nothing is installed in the process that would make it wait. */
static void wait_for_modules(struct trace *trace, pid_t pid)
{
	struct fay_session *list[FAY_TARGETS_MAX + 1];
	struct fay_target *target;
	struct fay_error error;
	if ((!trace->wait && !trace->follow) || fay_trace_sessions_of(trace, pid, list) ||
	    fay_target_open_pid(pid, &target, &error))
		return;
	fay_target_share(target, trace->files);
	if (!fay_trace_modules_wait(trace, pid, target))
		fay_target_close(target);
}

/* The session that has just been attached: its state among those that are merged; and traps, if it
 * is `later`, else they are set once all are there. `first` in its process. */
static int start(struct trace *trace, pid_t pid, bool later, bool first, struct fay_error *error)
{
	bool trapped = fay_trace_traps_keep(trace);
	struct fay_session *session = trapped ? trace->trapped[trace->trapped_count - 1].session
					      : trace->sessions[trace->session_count - 1];
	size_t size, traps = trace->traps.set;
	if (later && fay_trace_traps_later(trace, session, pid, error))
		return error->code;
	if (later)
		say_later(trace, session, pid, trace->traps.set - traps);
	if (trapped)
		wait_for_modules(trace, pid);
	if (trapped)
		return FAY_OK;
	struct fay_shm_control *shm = fay_session_shm(session, &size);
	if (first)
		fay_session_run(session, FAY_PROBE_BEGIN);
	if (trace->verbose && fay_session_unhooked(session))
		fprintf(trace->messages,
			"fay: process %d does not wait when it loads modules: %s; fay polls for "
			"them\n",
			pid, fay_session_unhooked(session));
	return fay_aggregator_add(trace->aggregator, shm, size,
				  fay_trace_counts_children(trace, pid) ? 0 : shm->target_pid,
				  error);
}

/* A process that runs already, and no other. Several could need more programs than can be made. */
static bool is_only_one(const struct trace *trace)
{
	return trace->pid_count == 1 && !trace->child && !trace->follow && !trace->wait;
}

int fay_trace_attach_one(struct trace *trace, pid_t pid, enum trace_attach when,
			 struct fay_error *error)
{
	bool later = when != TRACE_ATTACH_FIRST;
	struct fay_session *beside[FAY_TARGETS_MAX + 1];
	struct fay_attach_options options = {
		.size = sizeof(options),
		.shared_from = trace->share,
		.some = later || trace->follow || (trace->plan && trace->plan->inlined),
		.beside = beside,
		.tids = trace->tids,
		.tid_count = trace->tid_count,
		.when_full = trace->plan ? trace->plan->when_full : FAY_FULL_BLOCK,
		.clock = fay_trace_clock_set(trace),
		.costs = trace->budget > 0 || trace->analyze,
		.traps = fay_trace_traps_may(trace, pid)
				 ? fay_bpf_trap_exits(trace->follow || trace->wait)
				 : 0,
		.trap_functions = later && trace->follow ? FAY_TRAPS_LATER : 0,
		.permit = fay_trust_log_permit,
		.permit_context = &trace->log,
		.planned = is_only_one(trace) && !later ? fay_trace_traps_foresee : NULL,
		.planned_context = trace,
		.given_up = &trace->interrupted
	};
	struct fay_target *target;
	/* they would look like another tracer's */
	fay_traps_release_before(&trace->traps, pid);
	/* before its modules are read: one that comes meanwhile is seen later */
	fay_trace_watch(trace, pid);
	if (!fay_trace_make_room(trace, error))
		return error->code;
	options.beside_count = fay_trace_sessions_of(trace, pid, beside);
	options.modules = !options.beside_count;
	options.loading = options.beside_count;
	bool first = !options.beside_count || !fay_session_point_count(beside[0]);
	/* no trace has left anything in a program that has just begun */
	if ((!options.beside_count && when != TRACE_ATTACH_EXECUTED &&
	     fay_leftovers_clean_pid(pid, false, trace->messages, error)) ||
	    fay_target_open_pid(pid, &target, error))
		return error->code;
	fay_target_share(target, trace->files);
	int code = attach_session(trace, target, &options, later, error);
	if (code) {
		if (error->code != FAY_E_USAGE || !trace->wait || !options.modules ||
		    !fay_trace_modules_wait(trace, pid, target))
			fay_target_close(target);
		return error->code;
	}
	if (trace->plan && trace->plan->addresses)
		fay_addresses_take(&trace->addresses, pid);
	fay_trace_executed_watch(trace, pid);
	return start(trace, pid, later, first, error);
}

void fay_trace_report_dispatch(const struct trace *trace)
{
	size_t shared = 0;
	if (trace->session_count)
		fay_dispatch_print(trace->messages, "  ", &trace->verdict);
	for (size_t i = 0; i < trace->session_count; i++)
		shared += fay_session_shared_points(trace->sessions[i]);
	if (shared)
		fprintf(trace->messages, "  %zu functions share a trampoline\n", shared);
}

static void report_skipped(const struct trace *trace, const struct fay_session *session,
			   size_t *count)
{
	for (size_t i = 0; i < fay_session_skipped_count(session); i++) {
		const struct fay_skipped_point *skipped = fay_session_skipped(session, i);
		bool trapped = fay_traps_has(&trace->traps, session, i);
		if (trapped && trace->verbose)
			fprintf(trace->messages, "fay: traced by a trap: %s: %s\n",
				skipped->function, skipped->reason);
		if (trapped || (++*count > SKIPPED_SHOWN && !trace->verbose))
			continue;
		fprintf(trace->messages, "fay: not traced: %s: %s\n", skipped->function,
			skipped->reason);
	}
}

void fay_trace_report_points(const struct trace *trace)
{
	const struct fay_traps *traps = &trace->traps;
	char later[40];
	snprintf(later, sizeof(later), " and were set %.2f s later",
		 (double)(fay_monotonic() - trace->attached_since) / 1e9);
	size_t points = traps->set, skipped_count = 0,
	       processes = trace->session_count + trace->trapped_count;
	for (size_t s = 0; s < trace->session_count; s++) {
		points += fay_session_point_count(trace->sessions[s]);
		report_skipped(trace, trace->sessions[s], &skipped_count);
	}
	for (size_t s = 0; s < trace->trapped_count; s++)
		report_skipped(trace, trace->trapped[s].session, &skipped_count);
	if (skipped_count > SKIPPED_SHOWN && !trace->verbose)
		fprintf(trace->messages, "fay: not traced: %zu more; --verbose names them\n",
			skipped_count - SKIPPED_SHOWN);
	if (!processes) {
		/* a misspelt name is seen at once */
		if (trace->first_failure.code)
			fprintf(trace->messages, "fay: %.*s\n",
				(int)strcspn(trace->first_failure.message, "\n"),
				trace->first_failure.message);
		fprintf(trace->messages, "fay: tracing nothing yet, %s; Ctrl-C ends\n",
			fay_trace_is_by_name(trace) ? "waiting for processes"
			: trace->follow             ? "following"
						    : "waiting for modules");
		return;
	}
	if (trace->verbose)
		fay_trace_report_dispatch(trace);
	if (traps->set)
		fprintf(trace->messages,
			"fay: %zu of them through traps in the kernel, which cost more than "
			"jumps%s%s\n",
			traps->set, trace->child ? "" : later,
			trace->verbose ? ""
				       : "; --verbose names them, --only-inline leaves them out");
	if (traps->set && fay_trace_is_by_name(trace) && !trace->no_follow && !trace->follow)
		fprintf(trace->messages,
			"fay: children that are forked from now on are not traced by these traps; "
			"with --follow they are\n");
	fprintf(trace->messages, "fay: tracing %zu function%s in %zu process%s; Ctrl-C ends\n",
		points, points == 1 ? "" : "s", processes, processes == 1 ? "" : "es");
}

/* How a module that is not there yet is traced. */
static void say_how_to_wait(const struct trace *trace, struct fay_error *error)
{
	size_t used = strlen(error->message);
	if (!strncmp(error->message, "no module ", 10))
		snprintf(error->message + used, sizeof(error->message) - used,
			 "\nif it is loaded later, --wait traces it then%s",
			 trace->child ? "; if it belongs to a program that this one executes or "
					"starts, --follow does"
				      : "");
}

/* A process of a name may have forked after they were looked for and before it was patched: such a
 * child is attached to by itself. Those that were forked later have the patches. */
static void attach_rest(struct trace *trace)
{
	bool found = fay_trace_is_by_name(trace) && !trace->no_follow;
	for (unsigned round = 0; found && round < REST_ROUNDS; round++) {
		pid_t pids[FAY_TARGETS_MAX];
		struct fay_error error;
		size_t count = fay_trace_find_named(trace, pids, FAY_TARGETS_MAX);
		found = false;
		for (size_t i = 0; i < count && i < FAY_TARGETS_MAX; i++) {
			if (trace->pid_count == FAY_TARGETS_MAX ||
			    fay_trace_names(trace, pids[i]) ||
			    fay_sessions_include(trace->sessions, trace->session_count, pids[i]))
				continue;
			trace->pids[trace->pid_count++] = pids[i];
			if (!fay_trace_attach_one(trace, pids[i], TRACE_ATTACH_FIRST, &error))
				found = true;
			else if (!fay_process_has_ended(pids[i]) && error.code != FAY_E_USAGE)
				fprintf(trace->messages, "fay: process %d is not traced: %s\n",
					pids[i], error.message);
		}
	}
}

/* Several processes, or by name with --wait: one that cannot be traced is named, the others are
 * traced. What is followed may come to something that can be traced. */
int fay_trace_attach(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	for (size_t i = 0; i < trace->pid_count; i++) {
		if (!fay_trace_attach_one(trace, trace->pids[i], TRACE_ATTACH_FIRST, error))
			continue;
		if (!trace->first_failure.code)
			trace->first_failure = *error;
		/* by its name, and said then: look_for_names() */
		bool again = trace->wait && i >= trace->pid_named;
		if (again || ((trace->follow || trace->wait) && error->code == FAY_E_USAGE))
			continue;
		if (trace->pid_count == 1) {
			say_how_to_wait(trace, error);
			return error->code;
		}
		fprintf(trace->messages, "fay: process %d is not traced: %s\n", trace->pids[i],
			error->message);
	}
	attach_rest(trace);
	fay_trace_stage(trace, "find and attach", since);
	if (fay_trace_traps_attach(trace, error))
		return error->code;
	if (!trace->session_count && !trace->trapped_count && !trace->follow && !trace->wait)
		return error->code ? (int)error->code : FAY_E_REFUSED;
	fay_trace_hold_forked(trace);
	for (size_t i = 0; trace->follow && i < trace->pid_count; i++)
		fay_follow_take(&trace->follower, trace->pids[i]);
	if (trace->child && !trace->follow)
		kill(trace->child, SIGCONT);
	return FAY_OK;
}

const char *fay_trace_function_name(void *context, uint64_t hash)
{
	const struct trace *trace = context;
	const char *name;
	if (trace->root && !fay_trace_is_kernel(trace))
		return fay_root_function_name(trace->root, hash);
	for (unsigned side = 0; fay_trace_is_file(trace) && side < trace->plan->source_count;
	     side++) {
		name = fay_saved_name(fay_plan_saved(trace->plan, side), hash);
		if (name || side + 1 == trace->plan->source_count)
			return name;
	}
	if (trace->functions &&
	    ((name = fay_kernel_session_function_name(trace->functions, hash)) || trace->native))
		return name;
	if (fay_trace_is_kernel(trace))
		return fay_trace_bpf_name(trace, hash);
	for (size_t i = 0; i < trace->session_count; i++) {
		if ((name = fay_target_function_name(trace->targets[i], hash)))
			return name;
	}
	for (size_t i = 0; i < trace->gone_count; i++) {
		if ((name = fay_target_function_name(trace->gone[i], hash)))
			return name;
	}
	for (size_t i = 0; i < trace->trapped_count; i++) {
		if ((name = fay_target_function_name(trace->trapped[i].target, hash)))
			return name;
	}
	return fay_trace_is_mixed(trace) ? fay_trace_bpf_name(trace, hash) : NULL;
}

void fay_trace_address_name(void *context, uint64_t address, unsigned form, char *text, size_t size)
{
	struct trace *trace = context;
	if (trace->root)
		fay_code_text(fay_root_function_name(trace->root, address), address, form, text,
			      size);
	else if (fay_trace_is_file(trace))
		fay_trace_saved_address(trace, address, form, text, size);
	else
		fay_address_text(&trace->addresses, address, form, text, size);
}
