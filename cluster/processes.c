/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cli/cli.h"
#include "processes.h"

#define SESSIONS_MAX FAY_CLI_MAX_TARGETS
#define FAILED_MAX 1024u
#define LOOK_EVERY 250000000u /* ns between two looks for new processes and modules */
#define DETACH_TRIES 5

struct traced {
	struct fay_target *target;
	struct fay_session *session;
	uint64_t modules; /* fay_process_modules() when it was attached to, or last looked at */
};

struct processes {
	const struct fay_verdict *verdict;
	struct fay_aggregator *aggregator;
	struct traced traced[SESSIONS_MAX]; /* sessions; a process that loaded modules later has several */
	size_t count;
	struct fay_target **gone; /* of sessions that were retired: their functions' names */
	size_t gone_count;
	char comms[FAY_WIRE_COMMS_MAX][FAY_COMM_SIZE + 1];
	size_t comm_count;
	struct {
		pid_t pid;
		uint64_t modules;
	} failed[FAILED_MAX]; /* not tried again while they run, unless they load modules */
	size_t failed_count;
	bool wait, some, stopped;
	int64_t clock; /* ns added to events' times */
	uint64_t next_look;
	struct fay_error first; /* failure; code 0: none */
};

static bool is_known(const struct processes *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++)
		if (fay_target_pid(processes->traced[i].target) == pid && fay_session_target_alive(processes->traced[i].session))
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
	struct fay_target **grown = realloc(processes->gone, (processes->gone_count + 1) * sizeof(*grown));
	if (!grown) {
		fay_error_set(error, FAY_E_LIMIT, "out of memory");
		return false;
	}
	processes->gone = grown;
	if (fay_aggregator_retire(processes->aggregator, fay_session_shm(traced->session, &size), error))
		return false;
	fay_session_destroy(traced->session);
	fay_target_forget(traced->target);
	processes->gone[processes->gone_count++] = traced->target;
	*traced = processes->traced[--processes->count];
	return true;
}

static bool make_room(struct processes *processes, struct fay_error *error)
{
	if (processes->count < SESSIONS_MAX)
		return true;
	for (size_t i = processes->count; i-- > 0;) {
		struct fay_session *session = processes->traced[i].session;
		if (!fay_session_target_alive(session) && !fay_session_in_use(session) && !retire(processes, i, error))
			return false;
	}
	if (processes->count < SESSIONS_MAX)
		return true;
	fay_error_set(error, FAY_E_LIMIT, "more than %u processes at once", SESSIONS_MAX);
	return false;
}

/* `later`: modules were loaded; functions that are traced already, or are not there, are passed over. */
static int attach(struct processes *processes, pid_t pid, bool later, struct fay_error *error)
{
	struct fay_session *beside[SESSIONS_MAX];
	struct fay_attach_options options = { .size = sizeof(options), .some = later || processes->some, .clock = processes->clock, .beside = beside };
	uint64_t modules = fay_process_modules(pid); /* before they are read: one that comes meanwhile is seen later */
	if (!make_room(processes, error))
		return error->code;
	for (size_t i = 0; i < processes->count; i++)
		if (fay_target_pid(processes->traced[i].target) == pid && fay_session_target_alive(processes->traced[i].session))
			beside[options.beside_count++] = processes->traced[i].session;
	struct traced *traced = &processes->traced[processes->count];
	*traced = (struct traced){ .modules = modules };
	if (fay_cli_leftovers_clean_pid(pid, error) || fay_target_open_pid(pid, &traced->target, error))
		return error->code;
	if (fay_session_attach(traced->target, processes->verdict, &options, &traced->session, error)) {
		fay_target_close(traced->target);
		return error->code;
	}
	processes->count++;
	size_t size;
	struct fay_shm_control *shm = fay_session_shm(traced->session, &size);
	if (!options.beside_count)
		fay_session_run(traced->session, FAY_PROBE_BEGIN);
	fprintf(stderr, "fayd: %zu functions traced in process %d\n", fay_session_point_count(traced->session), pid);
	return fay_aggregator_add(processes->aggregator, shm, size, shm->target_pid, error);
}

static void try_attach(struct processes *processes, pid_t pid)
{
	struct fay_error error = { 0 };
	uint64_t modules = fay_process_modules(pid);
	if (is_known(processes, pid) || !attach(processes, pid, false, &error))
		return;
	fprintf(stderr, "fayd: process %d is not traced: %s\n", pid, error.message);
	if (!processes->first.code)
		processes->first = error;
	if (processes->failed_count == FAILED_MAX)
		return;
	processes->failed[processes->failed_count].pid = pid;
	processes->failed[processes->failed_count++].modules = modules;
}

static void look_for_names(struct processes *processes)
{
	pid_t pids[SESSIONS_MAX];
	for (size_t i = 0; i < processes->comm_count; i++) {
		size_t found = fay_cli_find_comm(processes->comms[i], pids, SESSIONS_MAX);
		for (size_t k = 0; k < found && k < SESSIONS_MAX; k++)
			try_attach(processes, pids[k]);
	}
}

/* Of traced processes, and of those that did not have what is asked for: it may be there now. */
static void look_for_modules(struct processes *processes)
{
	struct fay_error error;
	for (size_t i = 0, count = processes->count; i < count && i < processes->count; i++) {
		pid_t pid = fay_target_pid(processes->traced[i].target);
		uint64_t modules = fay_process_modules(pid);
		if (!modules || modules == processes->traced[i].modules || !fay_session_target_alive(processes->traced[i].session))
			continue;
		for (size_t k = 0; k < count; k++)
			if (fay_target_pid(processes->traced[k].target) == pid)
				processes->traced[k].modules = modules;
		if (attach(processes, pid, true, &error) && error.code != FAY_E_USAGE)
			fprintf(stderr, "fayd: process %d's new modules are not traced: %s\n", pid, error.message);
	}
	for (size_t i = processes->failed_count; i-- > 0;) {
		pid_t pid = processes->failed[i].pid;
		uint64_t modules = fay_process_modules(pid);
		if (modules == processes->failed[i].modules)
			continue;
		processes->failed[i] = processes->failed[--processes->failed_count];
		if (modules)
			try_attach(processes, pid);
	}
}

/* --- the feed ------------------------------------------------------------------------------------------------------------ */

static void tick(void *context)
{
	struct processes *processes = context;
	struct fay_error error;
	uint64_t now = fay_monotonic();
	for (size_t i = 0; i < processes->count; i++)
		fay_session_tick(processes->traced[i].session);
	if (fay_aggregator_poll(processes->aggregator, &error) < 0)
		fprintf(stderr, "fayd: %s\n", error.message);
	if (now < processes->next_look)
		return;
	processes->next_look = now + LOOK_EVERY;
	look_for_modules(processes);
	if (processes->wait)
		look_for_names(processes);
}

static bool alive(void *context)
{
	struct processes *processes = context;
	for (size_t i = 0; i < processes->count; i++)
		if (fay_session_target_alive(processes->traced[i].session))
			return true;
	return processes->wait;
}

static void stop(void *context)
{
	struct processes *processes = context;
	struct fay_error error;
	if (processes->stopped)
		return;
	processes->stopped = true;
	for (size_t i = 0; i < processes->count; i++) {
		int tries = 0;
		while (fay_session_detach(processes->traced[i].session, &error) && ++tries < DETACH_TRIES)
			usleep(200000);
		if (tries == DETACH_TRIES)
			fprintf(stderr, "fayd: process %d is STILL PATCHED (it runs correctly; `fay doctor` lists it): %s\n",
				fay_target_pid(processes->traced[i].target), error.message);
		fay_session_run(processes->traced[i].session, FAY_PROBE_END);
	}
	if (fay_aggregator_poll(processes->aggregator, &error) < 0)
		fprintf(stderr, "fayd: %s\n", error.message);
}

static int snapshot(void *context, uint32_t state, struct fay_result *result, struct fay_error *error)
{
	struct processes *processes = context;
	return fay_aggregator_snapshot(processes->aggregator, state, result, error);
}

static void forget(void *context, struct fay_changes *changes, uint32_t state, uint64_t below)
{
	struct processes *processes = context;
	fay_changes_forget(changes, processes->aggregator, state, below);
}

static const char *name(void *context, uint64_t hash)
{
	struct processes *processes = context;
	const char *found = NULL;
	for (size_t i = 0; i < processes->count && !found; i++)
		found = fay_target_function_name(processes->traced[i].target, hash);
	for (size_t i = 0; i < processes->gone_count && !found; i++)
		found = fay_target_function_name(processes->gone[i], hash);
	return found;
}

static void on_row(void *context, fay_row_function *function, void *function_context)
{
	struct processes *processes = context;
	fay_aggregator_on_row(processes->aggregator, function, function_context);
}

static void destroy(void *context)
{
	struct processes *processes = context;
	fay_aggregator_destroy(processes->aggregator);
	for (size_t i = 0; i < processes->count; i++) {
		fay_session_destroy(processes->traced[i].session);
		fay_target_close(processes->traced[i].target);
	}
	for (size_t i = 0; i < processes->gone_count; i++)
		fay_target_close(processes->gone[i]);
	free(processes->gone);
	free(processes);
}

static void read_start(struct processes *processes, const struct fay_wire_start *start)
{
	struct fay_reader comms = { .at = start->comms.bytes, .end = start->comms_end };
	for (uint16_t i = 0; i < start->comms.count; i++)
		fay_text_copy(processes->comms[processes->comm_count++], FAY_COMM_SIZE + 1, fay_wire_string(&comms, FAY_WIRE_NAME_MAX));
	look_for_names(processes);
	for (uint16_t i = 0; i < start->pids.count; i++) {
		uint32_t pid;
		memcpy(&pid, start->pids.bytes + i * sizeof(pid), sizeof(pid));
		if (pid && pid <= INT32_MAX)
			try_attach(processes, (pid_t)pid);
	}
}

int fay_processes_create(const struct fay_verdict *verdict, const struct fay_wire_start *start, struct fay_feed *feed, struct fay_error *error)
{
	struct processes *processes = calloc(1, sizeof(*processes));
	if (!processes)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	processes->verdict = verdict;
	processes->wait = start->flags & FAY_START_WAIT;
	processes->some = start->flags & FAY_START_SOME;
	processes->clock = start->clock;
	if (fay_aggregator_create(&verdict->schema, &processes->aggregator, error)) {
		free(processes);
		return error->code;
	}
	read_start(processes, start);
	if (!processes->count && !processes->wait) {
		if (processes->first.code)
			*error = processes->first;
		else
			fay_error_set(error, FAY_E_REFUSED, "no such process");
		destroy(processes);
		return error->code;
	}
	*feed = (struct fay_feed){ .context = processes, .tick = tick, .alive = alive, .stop = stop, .snapshot = snapshot, .forget = forget,
				   .name = name, .on_row = on_row, .destroy = destroy, .processes = (uint32_t)processes->count };
	for (size_t i = 0; i < processes->count; i++)
		feed->functions += (uint32_t)fay_session_point_count(processes->traced[i].session);
	return FAY_OK;
}
