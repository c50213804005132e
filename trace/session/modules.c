/* SPDX-License-Identifier: MIT */
/*
 * Programs that wait while they load and unload modules (fay_attach_options.modules): what went
 * with a module is forgotten, what came is attached to, and they go on. A process's first session
 * makes it wait; one that has nothing of what is asked for yet gets a session for that alone, with
 * --wait.
 */
#include "session.h"

void fay_trace_drop_unloaded(struct trace *trace, pid_t pid)
{
	struct fay_session *list[FAY_TARGETS_MAX + 1];
	struct fay_error error;
	if (fay_sessions_drop_unloaded(list, fay_trace_sessions_of(trace, pid, list), &error) &&
	    trace->verbose)
		fprintf(trace->messages, "fay: process %d: %s\n", pid, error.message);
}

static bool is_empty(struct trace *trace, pid_t pid, struct fay_session *session)
{
	return !fay_session_has_points(session) && fay_session_target_alive(session) &&
	       !(fay_trace_counts_children(trace, pid) && fay_session_in_use(session));
}

void fay_trace_retire_empty(struct trace *trace, pid_t pid)
{
	struct fay_session *list[FAY_TARGETS_MAX], *all[FAY_TARGETS_MAX + 1];
	struct fay_error error;
	size_t count = 0, size;
	for (size_t i = 0; i < trace->session_count; i++)
		if (fay_target_pid(trace->targets[i]) == pid &&
		    is_empty(trace, pid, trace->sessions[i]))
			list[count++] = trace->sessions[i];
	if (count && !trace->wait && !trace->follow &&
	    count == fay_trace_sessions_of(trace, pid, all))
		/* without any nothing would tell that the program still runs; with --wait and
		 * --follow it is watched for itself */
		count--;
	if (!count || fay_sessions_detach(list, count, &error))
		return;
	for (size_t i = trace->session_count; i-- > 0;) {
		struct fay_session *session = trace->sessions[i];
		bool detached = false;
		for (size_t k = 0; k < count; k++)
			detached |= list[k] == session;
		if (!detached)
			continue;
		fay_session_run(session, FAY_PROBE_END);
		if (!fay_aggregator_retire(trace->aggregator, fay_session_shm(session, &size),
					   &error))
			fay_trace_forget_session(trace, i);
	}
}

static bool is_there(const struct trace *trace, const struct fay_session *session)
{
	for (size_t i = 0; i < trace->session_count; i++)
		if (trace->sessions[i] == session)
			return true;
	for (size_t i = 0; i < trace->watched_count; i++)
		if (trace->watched[i].waits == session)
			return true;
	return false;
}

void fay_trace_modules_answer(const struct trace *trace, const struct trace_waiting *waiting)
{
	if (waiting && is_there(trace, waiting->session))
		fay_session_modules_answer(waiting->session, waiting->number);
}

static void serve(struct trace *trace, struct fay_session *session, pid_t pid)
{
	struct trace_waiting waiting = { .session = session };
	if (fay_session_modules_asked(session, &waiting.number) &&
	    fay_session_target_alive(session))
		fay_trace_attach_modules(trace, pid, &waiting);
}

void fay_trace_modules_tick(struct trace *trace)
{
	for (size_t i = 0; i < trace->session_count; i++)
		serve(trace, trace->sessions[i], fay_target_pid(trace->targets[i]));
	for (size_t i = 0; i < trace->watched_count; i++)
		if (trace->watched[i].waits)
			serve(trace, trace->watched[i].waits, trace->watched[i].pid);
}

size_t fay_trace_sessions_of(const struct trace *trace, pid_t pid, struct fay_session **list)
{
	size_t count = 0;
	for (size_t i = 0; i < trace->session_count; i++)
		if (fay_target_pid(trace->targets[i]) == pid &&
		    fay_session_target_alive(trace->sessions[i]))
			list[count++] = trace->sessions[i];
	for (size_t i = 0; i < trace->watched_count; i++)
		if (trace->watched[i].pid == pid && trace->watched[i].waits &&
		    fay_session_target_alive(trace->watched[i].waits))
			list[count++] = trace->watched[i].waits;
	return count;
}

bool fay_trace_modules_wait(struct trace *trace, pid_t pid, struct fay_target *target)
{
	struct fay_attach_options options = { .size = sizeof(options),
					      .modules = true,
					      .modules_alone = true,
					      .permit = fay_trust_log_permit,
					      .permit_context = &trace->log };
	for (size_t i = 0; i < trace->watched_count; i++) {
		struct trace_watched *watched = &trace->watched[i];
		struct fay_error error;
		if (watched->pid != pid)
			continue;
		fay_trace_modules_leave(trace, watched);
		if (!fay_session_attach(target, &trace->verdict, &options, &watched->waits,
					&error)) {
			watched->target = target;
			return true;
		}
		watched->waits = NULL;
		if (trace->verbose)
			fprintf(trace->messages,
				"fay: process %d does not wait when it loads modules: %s; fay "
				"polls for them\n",
				pid, error.message);
	}
	return false;
}

void fay_trace_modules_leave(struct trace *trace, struct trace_watched *watched)
{
	if (!watched->waits)
		return;
	trace->modules_late += fay_session_modules_late(watched->waits);
	fay_session_destroy(watched->waits);
	fay_target_close(watched->target);
	watched->waits = NULL;
}

uint64_t fay_trace_modules_late(const struct trace *trace)
{
	uint64_t late = trace->modules_late;
	for (size_t i = 0; i < trace->session_count; i++)
		late += fay_session_modules_late(trace->sessions[i]);
	return late;
}
