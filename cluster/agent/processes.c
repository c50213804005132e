/* SPDX-License-Identifier: MIT */
/* A feed of counts from processes of this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "processes_private.h"

#define LOOK_EVERY 250000000u /* ns between two looks for new processes and modules */
#define DRAIN_EVERY 50000000u /* ns between two looks at all threads' rings, if none is half full */
#define BUSY_FOR 1000000000u  /* ns since a ring was half full */
#define ALIVE_EVERY 20000000u /* ns between two looks whether the programs run */

static void drain(void *context)
{
	struct processes *processes = context;
	struct fay_error error;
	if (fay_aggregator_poll(processes->aggregator, &error) < 0) {
		fprintf(stderr, "fayd: %s\n", error.message);
		if (error.code == FAY_E_LIMIT)
			processes->over = error;
	}
	processes->next_drain = fay_monotonic() + DRAIN_EVERY;
}

/* Looking at a ring takes a cache line of each thread, which may be thousands. */
static void tick(void *context)
{
	struct processes *processes = context;
	uint64_t now = fay_monotonic();
	fay_processes_look_for_executed(processes);
	for (size_t i = 0; i < processes->count; i++)
		fay_session_tick(processes->traced[i].session);
	if (fay_aggregator_is_asked(processes->aggregator)) {
		processes->asked = now;
		drain(processes);
	} else if (now >= processes->next_drain) {
		drain(processes);
	}
	if (now < processes->next_look)
		return;
	processes->next_look = now + LOOK_EVERY;
	fay_processes_look_for_modules(processes);
	if (processes->wait)
		fay_processes_look_for_names(processes);
}

static bool is_busy(void *context)
{
	const struct processes *processes = context;
	return follows(processes) ||
	       (processes->asked && fay_monotonic() - processes->asked < BUSY_FOR);
}

/* Each look takes a lock of the process's memory. */
static bool alive(void *context)
{
	struct processes *processes = context;
	uint64_t now = fay_monotonic();
	if (processes->over.code)
		return false; /* the last snapshot says why */
	if (now < processes->next_alive)
		return true;
	processes->next_alive = now + ALIVE_EVERY;
	if (processes->wait || follows(processes))
		return processes->wait || !processes->follower.ended;
	for (size_t i = 0; i < processes->count; i++)
		if (fay_session_target_alive(processes->traced[i].session))
			return true;
	return false;
}

static void stop(void *context)
{
	struct processes *processes = context;
	if (processes->stopped)
		return;
	processes->stopped = true;
	fay_follow_end(&processes->follower);
	for (size_t i = 0; i < processes->count; i++) {
		fay_processes_detach(processes->traced[i].session,
				     fay_target_pid(processes->traced[i].target));
		fay_session_run(processes->traced[i].session, FAY_PROBE_END);
	}
	drain(processes);
}

static int snapshot(void *context, uint32_t state, struct fay_result *result,
		    struct fay_error *error)
{
	struct processes *processes = context;
	if (!processes->over.code)
		return fay_aggregator_snapshot(processes->aggregator, state, result, error);
	*error = processes->over;
	return (int)error->code;
}

static void forget(void *context, struct fay_changes *changes, uint32_t state, uint64_t below,
		   struct fay_result *final)
{
	struct processes *processes = context;
	fay_changes_forget(changes, processes->aggregator, state, below, final);
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

static void translate(void *context, uint32_t state, uint8_t *row, fay_codes_function *tell,
		      void *tell_context)
{
	struct processes *processes = context;
	fay_codes_translate(&processes->codes, state, row, tell, tell_context);
}

static void on_row(void *context, fay_row_function *function, void *function_context)
{
	struct processes *processes = context;
	fay_aggregator_on_row(processes->aggregator, function, function_context);
}

static void destroy(void *context)
{
	struct processes *processes = context;
	fay_follow_end(&processes->follower);
	fay_aggregator_destroy(processes->aggregator);
	for (size_t i = 0; i < processes->count; i++) {
		fay_session_destroy(processes->traced[i].session);
		free(processes->traced[i].tables);
		fay_target_close(processes->traced[i].target);
	}
	fay_codes_deinit(&processes->codes);
	for (size_t i = 0; i < processes->gone_count; i++)
		fay_target_close(processes->gone[i]);
	free(processes->gone);
	fay_files_destroy(processes->files);
	free(processes);
}

static void read_start(struct processes *processes, const struct fay_wire_start *start)
{
	struct fay_reader comms = { .at = start->comms.bytes, .end = start->comms_end };
	for (uint16_t i = 0; i < start->comms.count; i++)
		fay_text_copy(processes->comms[processes->comm_count++], FAY_COMM_SIZE + 1,
			      fay_wire_string(&comms, FAY_WIRE_NAME_MAX));
	fay_processes_look_for_names(processes);
	for (uint16_t i = 0; i < start->pids.count; i++) {
		uint32_t pid;
		memcpy(&pid, start->pids.bytes + i * sizeof(pid), sizeof(pid));
		if (pid && pid <= INT32_MAX)
			fay_processes_try(processes, (pid_t)pid);
	}
}

static void read_described(struct fay_described *described, const struct fay_wire_start *start)
{
	fay_text_copy(described->pattern, sizeof(described->pattern), start->function);
	described->file.build_id_size = start->build_id_size;
	memcpy(described->file.build_id, start->build_id, start->build_id_size);
}

/* Everything but the processes. */
static int prepare(struct processes *processes, const struct fay_verdict *verdict,
		   const struct fay_wire_start *start, const struct fay_role *role,
		   const struct fay_trust_log *log, uint64_t memory, struct fay_error *error)
{
	processes->verdict = verdict;
	processes->role = role;
	processes->log = *log;
	processes->wait = start->flags & FAY_START_WAIT;
	processes->some = start->flags & FAY_START_SOME;
	processes->when_full = start->flags & FAY_START_OVERWRITE ? FAY_FULL_OVERWRITE
			       : start->flags & FAY_START_DROP    ? FAY_FULL_DROP
								  : FAY_FULL_BLOCK;
	processes->clock = start->clock;
	read_described(&processes->described, start);
	if (fay_codes_init(&processes->codes, start, &verdict->schema, error) ||
	    fay_aggregator_create(&verdict->schema, &processes->aggregator, error))
		return error->code;
	fay_aggregator_set_limit(processes->aggregator, memory);
	if ((processes->wait || start->flags & FAY_START_FOLLOW) &&
	    fay_files_create(&processes->files, error))
		return error->code;
	return start->flags & FAY_START_FOLLOW ? fay_follow_start(&processes->follower, error)
					       : FAY_OK;
}

int fay_processes_create(const struct fay_verdict *verdict, const struct fay_wire_start *start,
			 const struct fay_role *role, const struct fay_trust_log *log,
			 uint64_t memory, struct fay_feed *feed, struct fay_error *error)
{
	struct processes *processes = calloc(1, sizeof(*processes));
	if (!processes)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (prepare(processes, verdict, start, role, log, memory, error)) {
		destroy(processes);
		return error->code;
	}
	read_start(processes, start);
	if (!processes->count && !processes->wait && !processes->followed) {
		if (processes->first.code)
			*error = processes->first;
		else if (role)
			fay_processes_say_excluded(role, error);
		else
			fay_error_set(error, FAY_E_REFUSED, "no such process");
		destroy(processes);
		return error->code;
	}
	*feed = (struct fay_feed){ .context = processes,
				   .tick = tick,
				   .drain = drain,
				   .is_busy = is_busy,
				   .alive = alive,
				   .stop = stop,
				   .snapshot = snapshot,
				   .forget = forget,
				   .name = name,
				   .translate = processes->codes.count ? translate : NULL,
				   .on_row = on_row,
				   .destroy = destroy,
				   .processes = (uint32_t)processes->count };
	for (size_t i = 0; i < processes->count; i++)
		feed->functions += (uint32_t)fay_session_point_count(processes->traced[i].session);
	return FAY_OK;
}
