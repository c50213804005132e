/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cli/cli.h"
#include "processes.h"

#define SESSIONS_MAX FAY_CLI_MAX_TARGETS
#define FAILED_MAX 1024u
#define LOOK_EVERY 250000000u /* ns between two looks for new processes */
#define DETACH_TRIES 5

struct processes {
	const struct fay_verdict *verdict;
	struct fay_aggregator *aggregator;
	struct fay_target *targets[SESSIONS_MAX];
	struct fay_session *sessions[SESSIONS_MAX];
	size_t count;
	char comms[FAY_WIRE_COMMS_MAX][FAY_COMM_SIZE + 1];
	size_t comm_count;
	pid_t failed[FAILED_MAX]; /* not tried again while they run */
	size_t failed_count;
	bool wait, stopped;
	uint64_t next_look;
	struct fay_error first; /* failure; code 0: none */
};

static bool is_known(const struct processes *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++)
		if (fay_target_pid(processes->targets[i]) == pid && fay_session_target_alive(processes->sessions[i]))
			return true;
	for (size_t i = 0; i < processes->failed_count; i++)
		if (processes->failed[i] == pid)
			return true;
	return false;
}

static int attach(struct processes *processes, pid_t pid, struct fay_error *error)
{
	struct fay_attach_options options = { .size = sizeof(options) };
	struct fay_target *target;
	size_t size, index = processes->count;
	if (index == SESSIONS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "more than %u processes", SESSIONS_MAX);
	if (fay_cli_leftovers_clean_pid(pid, error) || fay_target_open_pid(pid, &target, error))
		return error->code;
	if (fay_session_attach(target, processes->verdict, &options, &processes->sessions[index], error)) {
		fay_target_close(target);
		return error->code;
	}
	processes->targets[index] = target;
	processes->count++;
	struct fay_shm_control *shm = fay_session_shm(processes->sessions[index], &size);
	fay_session_run(processes->sessions[index], FAY_PROBE_BEGIN);
	return fay_aggregator_add(processes->aggregator, shm, size, shm->target_pid, error);
}

static void try_attach(struct processes *processes, pid_t pid)
{
	struct fay_error error = { 0 };
	if (is_known(processes, pid) || !attach(processes, pid, &error))
		return;
	fprintf(stderr, "fayd: process %d is not traced: %s\n", pid, error.message);
	if (!processes->first.code)
		processes->first = error;
	if (processes->failed_count < FAILED_MAX)
		processes->failed[processes->failed_count++] = pid;
}

static void look(struct processes *processes)
{
	pid_t pids[SESSIONS_MAX];
	for (size_t i = 0; i < processes->comm_count; i++) {
		size_t found = fay_cli_find_comm(processes->comms[i], pids, SESSIONS_MAX);
		for (size_t k = 0; k < found && k < SESSIONS_MAX; k++)
			try_attach(processes, pids[k]);
	}
}

/* --- the feed ------------------------------------------------------------------------------------------------------------ */

static void tick(void *context)
{
	struct processes *processes = context;
	struct fay_error error;
	uint64_t now = fay_monotonic();
	for (size_t i = 0; i < processes->count; i++)
		fay_session_tick(processes->sessions[i]);
	if (fay_aggregator_poll(processes->aggregator, &error) < 0)
		fprintf(stderr, "fayd: %s\n", error.message);
	if (processes->wait && now >= processes->next_look) {
		processes->next_look = now + LOOK_EVERY;
		look(processes);
	}
}

static bool alive(void *context)
{
	struct processes *processes = context;
	for (size_t i = 0; i < processes->count; i++)
		if (fay_session_target_alive(processes->sessions[i]))
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
		while (fay_session_detach(processes->sessions[i], &error) && ++tries < DETACH_TRIES)
			usleep(200000);
		if (tries == DETACH_TRIES)
			fprintf(stderr, "fayd: process %d is STILL PATCHED (it runs correctly; `fay doctor` lists it): %s\n",
				fay_target_pid(processes->targets[i]), error.message);
		fay_session_run(processes->sessions[i], FAY_PROBE_END);
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
		found = fay_target_function_name(processes->targets[i], hash);
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
		fay_session_destroy(processes->sessions[i]);
		fay_target_close(processes->targets[i]);
	}
	free(processes);
}

static void read_start(struct processes *processes, const struct fay_wire_start *start)
{
	struct fay_reader comms = { .at = start->comms.bytes, .end = start->comms_end };
	for (uint16_t i = 0; i < start->comms.count; i++)
		fay_text_copy(processes->comms[processes->comm_count++], FAY_COMM_SIZE + 1, fay_wire_string(&comms, FAY_WIRE_NAME_MAX));
	look(processes);
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
		feed->functions += (uint32_t)fay_session_point_count(processes->sessions[i]);
	return FAY_OK;
}
