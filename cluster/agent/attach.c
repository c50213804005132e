/* SPDX-License-Identifier: MIT */
/* Which processes a query traces on an agent, and attaching to them, as they come, execute other
 * programs, and load modules. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/suggest/suggest.h"
#include "processes_private.h"

#define DETACH_TRIES 5
#define MESSAGES_MAX 256u /* lines about processes that are not traced */

static bool is_known(const struct processes *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++)
		if (fay_target_pid(processes->traced[i].target) == pid &&
		    fay_session_target_alive(processes->traced[i].session))
			return true;
	for (size_t i = 0; i < processes->failed_count; i++)
		if (processes->failed[i].pid == pid)
			return true;
	return false;
}

/* Lets go of a session whose process is gone; what it counted stays. */
static bool retire(struct processes *processes, size_t index, struct fay_error *error)
{
	struct traced *traced = &processes->traced[index];
	size_t size;
	fay_session_run(traced->session, FAY_PROBE_END);
	struct fay_target **grown =
		realloc(processes->gone, (processes->gone_count + 1) * sizeof(*grown));
	if (!grown) {
		fay_error_set(error, FAY_E_LIMIT, "out of memory");
		return false;
	}
	processes->gone = grown;
	if (fay_aggregator_retire(processes->aggregator, fay_session_shm(traced->session, &size),
				  error))
		return false;
	fay_session_destroy(traced->session);
	free(traced->tables);
	fay_target_forget(traced->target);
	processes->gone[processes->gone_count++] = traced->target;
	*traced = processes->traced[--processes->count];
	return true;
}

static bool make_room(struct processes *processes, struct fay_error *error)
{
	if (processes->count < SESSIONS_MAX)
		return true;
	struct fay_session *sessions[SESSIONS_MAX];
	bool gone[SESSIONS_MAX];
	for (size_t i = 0; i < processes->count; i++)
		sessions[i] = processes->traced[i].session;
	fay_sessions_let_go(sessions, processes->count, gone);
	for (size_t i = processes->count; i-- > 0;)
		if (gone[i] && !retire(processes, i, error))
			return false;
	if (processes->count < SESSIONS_MAX)
		return true;
	fay_error_set(error, FAY_E_LIMIT, "more than %u processes at once", SESSIONS_MAX);
	return false;
}

bool fay_processes_detach(struct fay_session *session, pid_t pid)
{
	struct fay_error error;
	int tries = 0;
	while (fay_session_detach(session, &error) && ++tries < DETACH_TRIES)
		usleep(200000);
	if (tries == DETACH_TRIES)
		fprintf(stderr,
			"fayd: process %d is STILL PATCHED (it runs correctly; `fay doctor` lists "
			"it): %s\n",
			pid, error.message);
	return tries < DETACH_TRIES;
}

int fay_processes_say_excluded(const struct fay_role *role, struct fay_error *error)
{
	return fay_error_set(error, FAY_E_REFUSED, "no such process that the role '%s' includes",
			     role->name);
}

static int admit(struct processes *processes, pid_t pid, struct fay_error *error)
{
	processes->excluded.code = FAY_OK;
	return fay_role_admits(processes->role, pid, &processes->excluded)
		       ? fay_processes_say_excluded(processes->role, error)
		       : FAY_OK;
}

/* Whether the role admits the process is asked again behind patching: it may have executed another
 * program meanwhile, and nothing was read of it yet. */
static int attach_session(struct processes *processes, pid_t pid,
			  struct fay_attach_options *options, struct traced *traced,
			  struct fay_error *error)
{
	if (admit(processes, pid, error) || fay_leftovers_clean_pid(pid, false, stderr, error) ||
	    fay_target_open_pid(pid, &traced->target, error))
		return error->code;
	fay_target_share(traced->target, processes->files);
	int result = processes->described.pattern[0]
			     ? fay_described_check(&processes->described, traced->target, error)
			     : FAY_OK;
	if (!result)
		result = fay_codes_tables(&processes->codes, traced->target, options,
					  &traced->tables, error);
	if (!result)
		result = fay_session_attach(traced->target, processes->verdict, options,
					    &traced->session, error);
	if (!result && admit(processes, pid, error)) {
		result = error->code;
		fay_processes_detach(traced->session, pid);
		fay_session_destroy(traced->session);
	}
	if (result) {
		/* of what is followed the first one's message is told alone */
		if (!follows(processes) || !processes->first.code)
			fay_suggest(traced->target, error);
		free(traced->tables);
		fay_target_close(traced->target);
	} else {
		fay_codes_take(&processes->codes, pid);
	}
	return result;
}

/* `later`: modules were loaded; functions that are traced already, or are not there, are passed
 * over. */
static int attach(struct processes *processes, pid_t pid, bool later, struct fay_error *error)
{
	struct fay_session *beside[SESSIONS_MAX];
	struct fay_attach_options options = { .size = sizeof(options),
					      .some = later || processes->some ||
						      follows(processes),
					      .when_full = processes->when_full,
					      .clock = processes->clock,
					      .beside = beside,
					      .permit = fay_trust_log_permit,
					      .permit_context = &processes->log };
	/* before they are read: one that comes meanwhile is seen later */
	uint64_t modules = fay_process_modules(pid);
	processes->excluded.code = FAY_OK;
	if (!make_room(processes, error))
		return error->code;
	for (size_t i = 0; i < processes->count; i++)
		if (fay_target_pid(processes->traced[i].target) == pid &&
		    fay_session_target_alive(processes->traced[i].session))
			beside[options.beside_count++] = processes->traced[i].session;
	if (fay_sessions_drop_unloaded(beside, options.beside_count, error))
		return error->code;
	struct traced *traced = &processes->traced[processes->count];
	*traced = (struct traced){ .modules = modules };
	if (attach_session(processes, pid, &options, traced, error))
		return error->code;
	processes->count++;
	size_t size;
	struct fay_shm_control *shm = fay_session_shm(traced->session, &size);
	if (!options.beside_count)
		fay_session_run(traced->session, FAY_PROBE_BEGIN);
	fprintf(stderr, "fayd: %zu functions traced in process %d\n",
		fay_session_point_count(traced->session), pid);
	/* Children that are followed count. */
	return fay_aggregator_add(processes->aggregator, shm, size,
				  follows(processes) ? 0 : shm->target_pid, error);
}

static void note_failure(struct processes *processes, pid_t pid, uint64_t modules,
			 const struct fay_error *error)
{
	/* What is followed need not have what is asked for: programs that it executes may. */
	if ((!follows(processes) || error->code != FAY_E_USAGE) &&
	    processes->messages < MESSAGES_MAX)
		fprintf(stderr, "fayd: process %d is not traced: %s%s\n", pid,
			processes->excluded.code ? processes->excluded.message : error->message,
			++processes->messages == MESSAGES_MAX
				? " (further ones of this query are not shown)"
				: "");
	if (!processes->first.code)
		processes->first = *error;
	if (processes->failed_count == FAILED_MAX)
		return;
	processes->failed[processes->failed_count].pid = pid;
	processes->failed[processes->failed_count++].modules = modules;
}

void fay_processes_try(struct processes *processes, pid_t pid)
{
	struct fay_error error = { 0 };
	uint64_t modules = fay_process_modules(pid);
	/* A child of one that is followed is counted there. */
	if (is_known(processes, pid) ||
	    (follows(processes) && fay_process_tracer(pid) == processes->follower.follower))
		return;
	if (attach(processes, pid, false, &error))
		note_failure(processes, pid, modules, &error);
	if (!follows(processes) || admit(processes, pid, &error))
		return;
	fay_follow_take(&processes->follower, pid);
	processes->followed = true;
}

/* One that the role does not include (any more) is let run on, followed by nobody. */
static void take_again(struct processes *processes, pid_t pid)
{
	struct fay_error error;
	if (admit(processes, pid, &error))
		fay_follow_leave(&processes->follower, pid);
	else
		fay_follow_take(&processes->follower, pid);
}

void fay_processes_look_for_executed(struct processes *processes)
{
	struct fay_error error;
	struct fay_followed followed;
	while (follows(processes) && fay_follow_next(&processes->follower, &followed)) {
		pid_t pid = followed.pid;
		for (size_t i = processes->failed_count; i-- > 0;)
			if (processes->failed[i].pid == pid)
				processes->failed[i] = processes->failed[--processes->failed_count];
		uint64_t modules = fay_process_modules(pid);
		if (attach(processes, pid, true, &error))
			note_failure(processes, pid, modules, &error);
		take_again(processes, pid);
	}
}

/* Its modules are not what they were. */
static void attach_again(struct processes *processes, pid_t pid)
{
	struct fay_error error;
	if (follows(processes))
		fay_follow_release(&processes->follower, pid);
	if (attach(processes, pid, true, &error) && error.code != FAY_E_USAGE)
		fprintf(stderr, "fayd: process %d's new modules are not traced: %s\n", pid,
			error.message);
	if (follows(processes))
		take_again(processes, pid);
}

void fay_processes_look_for_names(struct processes *processes)
{
	pid_t pids[SESSIONS_MAX];
	for (size_t i = 0; i < processes->comm_count; i++) {
		size_t found = fay_process_find_comm(processes->comms[i], pids, SESSIONS_MAX);
		for (size_t k = 0; k < found && k < SESSIONS_MAX; k++)
			fay_processes_try(processes, pids[k]);
	}
}

/* Stacks go through new modules, too, and functions there are called something. */
static void know_again(struct processes *processes, pid_t pid)
{
	struct fay_error error;
	if (admit(processes, pid, &error))
		return;
	fay_codes_take(&processes->codes, pid);
	for (size_t i = 0; i < processes->count; i++)
		if (fay_target_pid(processes->traced[i].target) == pid)
			fay_codes_update(&processes->codes, pid, processes->traced[i].tables,
					 processes->traced[i].session);
}

void fay_processes_look_for_modules(struct processes *processes)
{
	for (size_t i = 0, count = processes->count; i < count && i < processes->count; i++) {
		pid_t pid = fay_target_pid(processes->traced[i].target);
		uint64_t modules = fay_process_modules(pid);
		if (!modules || modules == processes->traced[i].modules ||
		    !fay_session_target_alive(processes->traced[i].session))
			continue;
		for (size_t k = 0; k < count; k++)
			if (fay_target_pid(processes->traced[k].target) == pid)
				processes->traced[k].modules = modules;
		know_again(processes, pid);
		attach_again(processes, pid);
	}
	for (size_t i = processes->failed_count; i-- > 0;) {
		pid_t pid = processes->failed[i].pid;
		uint64_t modules = fay_process_modules(pid);
		if (modules == processes->failed[i].modules)
			continue;
		processes->failed[i] = processes->failed[--processes->failed_count];
		if (modules && follows(processes))
			fay_follow_release(&processes->follower, pid);
		if (modules)
			fay_processes_try(processes, pid);
		if (modules && follows(processes))
			fay_follow_leave(&processes->follower, pid); /* unless it was taken */
	}
}
