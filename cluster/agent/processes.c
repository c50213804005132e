/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/clock.h"
#include "process/process.h"

#include "codes_private.h"
#include "feeds_private.h"

#define SESSIONS_MAX FAY_TARGETS_MAX
#define FAILED_MAX 1024u
#define LOOK_EVERY 250000000u /* ns between two looks for new processes and modules */
#define DRAIN_EVERY 50000000u /* ns between two looks at all threads' rings, if none is half full */
#define BUSY_FOR 1000000000u  /* ns since a ring was half full */
#define ALIVE_EVERY 20000000u /* ns between two looks whether the programs run */
#define DETACH_TRIES 5
#define MESSAGES_MAX 256u /* lines about processes that are not traced */

struct traced {
	struct fay_target *target;
	struct fay_session *session;
	struct fay_stack_tables *tables; /* NULL: the probes walk no stacks */
	uint64_t modules; /* fay_process_modules() when it was attached to, or last looked at */
};

struct processes {
	const struct fay_verdict *verdict;
	struct fay_aggregator *aggregator;
	/* sessions; a process that loaded modules later has several */
	struct traced traced[SESSIONS_MAX];
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
	const struct fay_role *role; /* NULL: any process */
	/* the function whose types the query uses, of one build; pattern "": there is none */
	struct fay_described described;
	struct fay_follow follower;
	bool followed; /* any process was found to follow */
	enum fay_when_full when_full;
	struct fay_codes codes;
	int64_t clock; /* ns added to events' times */
	/* asked: when a ring was half full last */
	uint64_t next_look, next_drain, next_alive, asked;
	struct fay_error first; /* failure; code 0: none */
	struct fay_error over;  /* the limit of memory that was hit; code 0: none */
	/* why the role does not include the process that was tried last; code 0: it does */
	struct fay_error excluded;
	unsigned messages; /* about processes that are not traced */
};

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
	for (size_t i = processes->count; i-- > 0;) {
		struct fay_session *session = processes->traced[i].session;
		if (!fay_session_target_alive(session) && !fay_session_in_use(session) &&
		    !retire(processes, i, error))
			return false;
	}
	if (processes->count < SESSIONS_MAX)
		return true;
	fay_error_set(error, FAY_E_LIMIT, "more than %u processes at once", SESSIONS_MAX);
	return false;
}

static bool follows(const struct processes *processes)
{
	return processes->follower.follower != 0;
}

/* A debugger or a vfork can hold a process for a while. False: it stays patched. */
static bool detach(struct fay_session *session, pid_t pid)
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

/* The signer hears the same of other users' processes as of none; what they are is for the agent's
 * own output. */
static int say_excluded(const struct fay_role *role, struct fay_error *error)
{
	return fay_error_set(error, FAY_E_REFUSED,
			     "there is no such process that the role '%s' includes", role->name);
}

static int admit(struct processes *processes, pid_t pid, struct fay_error *error)
{
	processes->excluded.code = FAY_OK;
	return fay_role_admits(processes->role, pid, &processes->excluded)
		       ? say_excluded(processes->role, error)
		       : FAY_OK;
}

/* Whether the role admits the process is asked again behind patching: it may have executed another
 * program meanwhile, and nothing was read of it yet. */
static int attach_session(struct processes *processes, pid_t pid,
			  struct fay_attach_options *options, struct traced *traced,
			  struct fay_error *error)
{
	if (admit(processes, pid, error) || fay_leftovers_clean_pid(pid, false, error) ||
	    fay_target_open_pid(pid, &traced->target, error))
		return error->code;
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
		detach(traced->session, pid);
		fay_session_destroy(traced->session);
	}
	if (result) {
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
					      .beside = beside };
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
				? " (the last such line of this query)"
				: "");
	if (!processes->first.code)
		processes->first = *error;
	if (processes->failed_count == FAILED_MAX)
		return;
	processes->failed[processes->failed_count].pid = pid;
	processes->failed[processes->failed_count++].modules = modules;
}

static void try_attach(struct processes *processes, pid_t pid)
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

/* Another program runs in a followed process; it stands still until it is taken again. */
static void look_for_executed(struct processes *processes)
{
	struct fay_error error;
	pid_t pid;
	while (follows(processes) && (pid = fay_follow_next(&processes->follower))) {
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

static void look_for_names(struct processes *processes)
{
	pid_t pids[SESSIONS_MAX];
	for (size_t i = 0; i < processes->comm_count; i++) {
		size_t found = fay_process_find_comm(processes->comms[i], pids, SESSIONS_MAX);
		for (size_t k = 0; k < found && k < SESSIONS_MAX; k++)
			try_attach(processes, pids[k]);
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

/* Of traced processes, and of those that did not have what is asked for: it may be there now. */
static void look_for_modules(struct processes *processes)
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
			try_attach(processes, pid);
		if (modules && follows(processes))
			fay_follow_leave(&processes->follower, pid); /* unless it was taken */
	}
}

/* --- the feed
 * -------------------------------------------------------------------------------------------------
 * */

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
	look_for_executed(processes);
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
	look_for_modules(processes);
	if (processes->wait)
		look_for_names(processes);
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
		detach(processes->traced[i].session, fay_target_pid(processes->traced[i].target));
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
	free(processes);
}

static void read_start(struct processes *processes, const struct fay_wire_start *start)
{
	struct fay_reader comms = { .at = start->comms.bytes, .end = start->comms_end };
	for (uint16_t i = 0; i < start->comms.count; i++)
		fay_text_copy(processes->comms[processes->comm_count++], FAY_COMM_SIZE + 1,
			      fay_wire_string(&comms, FAY_WIRE_NAME_MAX));
	look_for_names(processes);
	for (uint16_t i = 0; i < start->pids.count; i++) {
		uint32_t pid;
		memcpy(&pid, start->pids.bytes + i * sizeof(pid), sizeof(pid));
		if (pid && pid <= INT32_MAX)
			try_attach(processes, (pid_t)pid);
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
		   const struct fay_wire_start *start, const struct fay_role *role, uint64_t memory,
		   struct fay_error *error)
{
	processes->verdict = verdict;
	processes->role = role;
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
	return start->flags & FAY_START_FOLLOW ? fay_follow_start(&processes->follower, error)
					       : FAY_OK;
}

int fay_processes_create(const struct fay_verdict *verdict, const struct fay_wire_start *start,
			 const struct fay_role *role, uint64_t memory, struct fay_feed *feed,
			 struct fay_error *error)
{
	struct processes *processes = calloc(1, sizeof(*processes));
	if (!processes)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (prepare(processes, verdict, start, role, memory, error)) {
		destroy(processes);
		return error->code;
	}
	read_start(processes, start);
	if (!processes->count && !processes->wait && !processes->followed) {
		if (processes->first.code)
			*error = processes->first;
		else if (role)
			say_excluded(role, error);
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
