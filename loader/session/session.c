/* SPDX-License-Identifier: MIT */
/*
 * A session's beginning: plan without a stop, install in one. Its end: session_end.c.
 *
 * Planning reads the target while it runs, so installing re-checks what the plan rests on. If that
 * has changed (another fay's patch, a module that moved), the plan is made anew, a few times.
 */
#include "session.h"

#include "loader/process/process.h"
#include "loader/stop/stop.h"

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define ATTEMPTS 12u
#define HELD_ATTEMPTS 3u /* after so many, places that are held are left out */
#define PAGE 4096u
#define SLOTS_MIN 64u
#define SLOTS_LESS 4u /* that part of the slots is tried next */
#define SHARED_FROM 256u
#define SPILL_MIN (256u << 10)
/* struct pthread.tid on x86-64, glibc 2.3 to 2.41; checked against every thread */
#define TID_OFFSET_GLIBC 0x2d0

static void lay_out_state(struct fay_session *session)
{
	const struct fay_schema *schema = &session->plan.verdict->schema;
	struct fay_shm_control *geometry = &session->plan.geometry;
	uint64_t largest = 0, spill = SPILL_MIN;
	uint32_t costs = 0;
	bool spills = false;

	for (uint32_t i = 0; i < schema->state_count; i++)
		if (schema->states[i].kind != FAY_STATE_CELL) {
			spills = true;
			if (schema->states[i].size > largest)
				largest = schema->states[i].size;
		}
	while (spill < 4 * largest)
		spill *= 2;
	if (session->plan.options.ring_bytes)
		spill = session->plan.options.ring_bytes;
	if (session->plan.options.costs)
		costs = (uint32_t)session->plan.point_count * (session->plan.some_records ? 2 : 1);
	for (uint32_t i = 0; session->plan.options.costs && i < session->plan.point_count; i++)
		session->plan.points[i].cost = i;
	*geometry = (struct fay_shm_control){
		.magic = FAY_SHM_MAGIC,
		.version = 1,
		.slot_max = session->plan.options.slot_max,
		.global_offset = FAY_SHM_PAGE,
		.global_size = schema->global_size,
		.local_size = schema->local_size,
		.slots_offset = FAY_SHM_PAGE + fay_round_up(schema->global_size, PAGE),
		.cost_count = costs,
		/* behind LOCAL's begin in any case: a place's distance from there is not 0 */
		.cost_offset = (FAY_SLOT_HEADER + schema->local_size + 64u) & ~63u,
		.spill_size = spills ? spill : 0,
		.when_full = session->plan.options.when_full,
	};
	geometry->spill_offset = fay_round_up(
		geometry->cost_offset + geometry->cost_count * sizeof(struct fay_place_cost), PAGE);
	geometry->slot_stride = geometry->spill_offset + geometry->spill_size;
	session->plan.shm_size =
		geometry->slots_offset + geometry->slot_max * geometry->slot_stride;
}

/* Whether some probe of these kinds reads the field. */
static bool reads(const struct fay_verdict *verdict, uint32_t kinds, uint32_t field)
{
	for (uint32_t i = 0; i < verdict->probe_count; i++)
		if (kinds >> verdict->probes[i].kind & 1 && verdict->probes[i].event_fields & field)
			return true;
	return false;
}

static int check_verdict(const struct fay_verdict *verdict, struct fay_error *error)
{
	if (verdict->outcome != FAY_ACCEPTED)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the image was not accepted by the verifier");
	if (verdict->probe_count == 0 || verdict->probe_count > FAY_IMAGE_MAX_PROBES)
		return fay_error_set(error, FAY_E_REFUSED, "the image has no probe");
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const char *refusal = fay_trampoline_refusal(&verdict->probes[i]);

		if (fay_loader_check_cpu(&verdict->probes[i], i, error))
			return error->code;
		if (refusal)
			return fay_error_set(error, FAY_E_REFUSED, "probe %u (%s) %s", i,
					     verdict->probes[i].pattern, refusal);
	}
	/* they would be wanted at one place */
	if (reads(verdict, 1u << FAY_PROBE_OFFSET | 1u << FAY_PROBE_MARKER, FAY_FIELD_FLAGS) &&
	    reads(verdict, 1u << FAY_PROBE_ENTRY, FAY_FIELD_CALLER))
		return fay_error_set(error, FAY_E_REFUSED,
				     "the image reads event.flags in one probe and event.caller, "
				     "which lies there, in another");
	return 0;
}

/* Whether rings can be as the options say. */
static int check_rings(const struct fay_session *session, struct fay_error *error)
{
	const struct fay_schema *schema = &session->plan.verdict->schema;
	const struct fay_attach_options *options = &session->plan.options;
	uint64_t bytes = options->ring_bytes;

	if (bytes && (bytes < 4096 || bytes > FAY_RING_BYTES_MAX || (bytes & (bytes - 1))))
		return fay_error_set(error, FAY_E_USAGE,
				     "a ring of %" PRIu64 " bytes cannot be made", bytes);
	if ((unsigned)options->when_full > FAY_FULL_OVERWRITE)
		return fay_error_set(error, FAY_E_USAGE, "unknown policy %u for a full ring",
				     (unsigned)options->when_full);
	for (uint32_t i = 0; i < schema->state_count; i++) {
		if (schema->states[i].kind != FAY_STATE_TABLE)
			continue;
		if (options->when_full == FAY_FULL_OVERWRITE)
			return fay_error_set(error, FAY_E_REFUSED,
					     "rows of a table are sums of many events and are not "
					     "overwritten in a ring");
		if (bytes && bytes < 2 * (uint64_t)schema->states[i].size)
			return fay_error_set(error, FAY_E_USAGE,
					     "a ring of %" PRIu64
					     " bytes is too small for a table of %u",
					     bytes, schema->states[i].size);
	}
	return FAY_OK;
}

/* Valgrind executes translations, and of code that it has seen the program map: a jump into
 * anything else ends the program. */
static bool runs_under_valgrind(pid_t pid)
{
	char name[32], path[PATH_MAX];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	length = readlink(name, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	return fnmatch("*/valgrind/*-amd64-linux", path, 0) == 0;
}

static int check_target(struct fay_session *session, struct fay_error *error)
{
	static const uint64_t types[] = { AT_PHENT };
	uint64_t values[1];
	bool readable;

	if (session->pid_start == 0)
		return fay_error_set(error, FAY_E_USAGE, "no such process: %d",
				     (int)session->plan.pid);
	if (session->plan.pid == getpid())
		return fay_error_set(error, FAY_E_USAGE, "a process cannot trace itself");
	if (runs_under_valgrind(session->plan.pid))
		return fay_error_set(
			error, FAY_E_REFUSED,
			"process %d runs under valgrind, which would crash it at a patched "
			"function: valgrind executes translations of the code that it knows",
			(int)session->plan.pid);
	/* Of a program of 32 bits these words are narrower, and the size of a program header is not
	 * found there. */
	readable = fay_process_auxiliary(session->plan.pid, types, values, 1);
	if (readable && values[0] != sizeof(Elf64_Phdr))
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d runs a 32-bit program; only x86-64 is supported",
				     (int)session->plan.pid);
	if (!fay_reads_fs_base())
		return fay_error_set(error, FAY_E_REFUSED,
				     "this CPU or kernel does not let programs read the fs base "
				     "(FSGSBASE, Linux 5.9); the dispatcher needs that");
	if (fay_thread_field(session->plan.pid, session->plan.pid, "Seccomp:") > 0)
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d runs under seccomp, which may kill it for the "
				     "system calls that attaching needs",
				     (int)session->plan.pid);
	return 0;
}

struct attempt_context {
	struct fay_session *session;
	struct fay_error *error;
};

/* In the keeper. If fay was killed meanwhile the session is removed again, now that the target runs
 * rightly with or without it. */
static int install_stopped(void *context)
{
	struct fay_session *session = ((struct attempt_context *)context)->session;
	struct fay_error *error = ((struct attempt_context *)context)->error;
	struct fay_zone_removal removal = { .session = session->plan.id };
	struct fay_stop stop;
	uint64_t pause;
	int code;

	if (fay_keeper_orphaned())
		return fay_error_set(error, FAY_E_INTERNAL, "fay is gone");
	code = fay_stop_all(session->plan.pid, session->plan.options.stop_timeout_ms,
			    session->plan.options.tracer_wait_ms, &stop, error);
	if (code)
		return code;
	code = fay_install_stopped(&session->install, &stop, error);
	session->no_room = code && stop.no_room;
	pause = fay_stop_release(&stop);
	if (pause > session->longest_pause)
		session->longest_pause = pause;
	if (!code && fay_keeper_orphaned())
		fay_zones_remove(session->plan.pid, &removal, 1,
				 session->plan.options.stop_timeout_ms,
				 session->plan.options.tracer_wait_ms, NULL, NULL);
	return code;
}

/* Places that are held in each attempt will be so: Go's stacks, for one, all end in the address of
 * runtime.goexit plus one. They are left out. */
static void give_up_held(struct fay_session *session)
{
	for (size_t i = 0;
	     i < session->install.held_count && session->plan.given_up_count < FAY_HELD_MAX; i++)
		session->plan.given_up[session->plan.given_up_count++] = session->install.held[i];
	session->install.held_count = 0;
}

/* Of who attaches: asked until it is given, and then no more. */
static int ask_permission(struct fay_session *session, struct fay_error *error)
{
	const struct fay_attach_options *options = &session->plan.options;
	int code = 0;

	if (options->permit && !session->permitted)
		code = options->permit(options->permit_context, session->plan.pid, error);
	session->permitted = !code;
	return code;
}

static int attempt(struct fay_session *session, struct fay_error *error)
{
	struct attempt_context context = { session, error };
	int code = fay_plan_make(&session->plan, error);

	if (!code)
		code = ask_permission(session, error);
	if (code || fay_plan_only_traps(&session->plan))
		return code;
	if (session->plan.options.planned)
		session->plan.options.planned(session->plan.options.planned_context, session);
	code = fay_install_prepare(&session->install, error);
	return code ? code : fay_keeper_run(install_stopped, &context, error);
}

/* What is reserved there is for slot_max threads: fewer need less, where the program's address
 * space or memory is limited. False: it would be for too few. */
static bool reserve_less(struct fay_session *session)
{
	if (session->plan.options.slot_max / SLOTS_LESS < SLOTS_MIN)
		return false;
	session->plan.options.slot_max /= SLOTS_LESS;
	lay_out_state(session);
	session->plan.records_size = fay_records_size(&session->plan);
	return true;
}

/* The points, as they were planned of the files before if that can be; and what the session's state
 * is then. */
static int resolve(struct fay_session *session, bool assemble, struct fay_error *error)
{
	bool assembled = false;
	int code = 0;

	if (assemble)
		fay_plan_assemble(&session->plan, &assembled);
	if (!assembled)
		code = fay_points_resolve(&session->plan, error);
	if (!code && session->plan.options.beside_count)
		code = fay_session_leave_to_others(session, error);
	if (!code && session->plan.options.costs && session->plan.point_count > FAY_COSTS_MAX)
		code = fay_error_set(
			error, FAY_E_LIMIT,
			"process %d: the cost of %zu functions cannot be measured, %u at most",
			(int)session->plan.pid, session->plan.point_count, FAY_COSTS_MAX);
	if (!code)
		lay_out_state(session);
	return code;
}

/* Behind an attempt that failed. What was planned of files may not be so in this process. */
static int plan_again(struct fay_session *session, struct fay_error *error)
{
	fay_install_forget(&session->install);
	fay_plan_forget(&session->plan);
	session->no_room = false;
	if (!session->plan.assembled)
		return 0;
	session->plan.assembled = false;
	fay_points_deinit(&session->plan);
	return resolve(session, false, error);
}

/* What was lent goes back; a plan alone stays whole. Only what is patched counts as a point. */
static int settle(struct fay_session *session, struct fay_error *error)
{
	session->beside = fay_plan_helper_count(&session->plan);
	fay_ready_return(&session->plan);
	if (session->plan.options.plan_only && !fay_ready_own(&session->plan, true))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->points = fay_plan_point_count(&session->plan);
	fay_plan_settle(&session->plan);
	return 0;
}

bool fay_session_own(const struct fay_session *session)
{
	/* not seen by who asks: the same points, had from another place */
	struct fay_plan *plan = (struct fay_plan *)&session->plan;

	if (!plan->lender || plan->points)
		return true;
	if (!fay_ready_own(plan, false))
		return false;
	fay_plan_settle(plan);
	return true;
}

static int attach(struct fay_session *session, struct fay_error *error)
{
	int code = check_verdict(session->plan.verdict, error);

	if (!code && session->plan.options.counts_only) {
		code = fay_counting_make(session->plan.verdict, &session->counted, error);
		session->plan.verdict = &session->counted;
	}
	if (!code)
		code = check_target(session, error);
	if (code)
		return code;
	fay_known_mark(session);
	/* a plan is kept by its verdict, and the one for counting goes with the session */
	code = resolve(session, !session->plan.options.counts_only, error);
	if (code)
		return code;
	if (session->plan.options.counts_only)
		fay_counting_choose(session->plan.verdict, &session->plan.dispatch);
	else
		fay_dispatch_choose(session->plan.verdict, &session->plan.dispatch);
	session->reads_time = session->plan.options.costs;
	for (uint32_t i = 0; i < session->plan.verdict->probe_count; i++)
		session->reads_time |= (session->plan.verdict->probes[i].event_fields &
					(FAY_FIELD_TIME | FAY_FIELD_DURATION)) != 0;
	if (session->reads_time)
		fay_clock_calibrate(&session->plan.time_multiplier, &session->plan.time_offset);
	session->plan.time_offset += (uint64_t)session->plan.options.clock;
	for (unsigned round = 0; round < ATTEMPTS; round++) {
		if (round && (code = plan_again(session, error)))
			break;
		code = session->plan.options.plan_only ? fay_plan_make(&session->plan, error)
						       : attempt(session, error);
		if (session->no_room && reserve_less(session))
			continue;
		if (session->no_room)
			code = fay_error_set(
				error, FAY_E_REFUSED,
				"process %d has no room for the %zu MiB that fay has to reserve "
				"there: its address space (RLIMIT_AS), its data (RLIMIT_DATA) or "
				"the machine's memory (vm.overcommit_memory) is limited",
				(int)session->plan.pid,
				(session->plan.shm_size + session->plan.records_size) >> 20);
		if (code >= 0)
			break;
		if (round >= HELD_ATTEMPTS)
			give_up_held(session);
		usleep(500u << (round < 6 ? round : 6));
	}
	fay_install_forget(&session->install);
	session->attached = code == 0 && !session->plan.options.plan_only &&
			    !fay_plan_only_traps(&session->plan);
	if (!code)
		code = settle(session, error);
	if (session->attached && !code)
		code = fay_host_create(session, &session->host, error);
	return code < 0 ? (error ? (int)error->code : FAY_E_LIMIT) : code;
}

/* Those of the threads asked for that are in this process. */
static int choose_threads(struct fay_session *session, struct fay_error *error)
{
	size_t kept = 0;

	if (session->plan.options.tid_count > FAY_TIDS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "more than %u threads", FAY_TIDS_MAX);
	for (size_t i = 0; i < session->plan.options.tid_count; i++) {
		char path[80];

		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)session->plan.pid,
			 (int)session->plan.options.tids[i]);
		if (access(path, F_OK) == 0)
			session->plan.tids[kept++] = (uint32_t)fay_inner_id(
				session->plan.pid, session->plan.options.tids[i]);
	}
	if (session->plan.options.tid_count && kept == 0)
		return fay_error_set(error, FAY_E_REFUSED, "process %d has no thread %d%s",
				     (int)session->plan.pid, (int)session->plan.options.tids[0],
				     session->plan.options.tid_count > 1 ? ", nor the others" : "");
	session->plan.options.tid_count = kept;
	return 0;
}

int fay_session_attach(struct fay_target *target, const struct fay_verdict *verdict,
		       const struct fay_attach_options *options, struct fay_session **result,
		       struct fay_error *error)
{
	struct fay_session *session = calloc(1, sizeof(*session));
	struct fay_error local;
	int code;

	if (!session)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->plan.target = target;
	session->install.plan = &session->plan;
	session->memory = session->install.users = -1;
	session->plan.verdict = verdict;
	session->plan.pid = fay_target_pid(target);
	session->pid_start = fay_process_start(session->plan.pid);
	session->attach_ticks = fay_ticks_now();
	session->plan.tid_offset = TID_OFFSET_GLIBC;
	session->plan.thread_pointer = true;
	if (options)
		memcpy(&session->plan.options, options,
		       options->size < sizeof(*options) ? options->size : sizeof(*options));
	if (!session->plan.options.slot_max)
		session->plan.options.slot_max = 4096;
	if (!session->plan.options.stop_timeout_ms)
		session->plan.options.stop_timeout_ms = FAY_STOP_TIMEOUT_MS;
	if (!session->plan.options.shared_from)
		session->plan.options.shared_from = SHARED_FROM;
	session->plan.options.costs |= session->plan.options.counts_only;
	if (session->plan.options.costs)
		/* the place of a point's cost is in its trampoline */
		session->plan.options.shared_from = UINT32_MAX;
	if (!session->plan.options.tracer_wait_ms)
		session->plan.options.tracer_wait_ms = FAY_TRACER_WAIT_MS;
	if (getrandom(&session->plan.id, sizeof(session->plan.id), 0) !=
	    (ssize_t)sizeof(session->plan.id))
		session->plan.id = fay_loader_clock_ns() ^ (uint64_t)getpid() << 40;
	code = check_rings(session, error ? error : &local);
	if (!code)
		code = choose_threads(session, error ? error : &local);
	if (!code)
		code = fay_turn_begin(session, attach, error ? error : &local);
	if (!code || code == FAY_E_USAGE)
		fay_known_remember(session->plan.options.beside_count
					   ? session->plan.options.beside[0]
					   : session,
				   target);
	if (code) {
		/* It was there, and whatever step failed, and how, came of that. */
		if (session->pid_start && fay_process_gone(session->plan.pid))
			code = fay_error_set(error, FAY_E_REFUSED,
					     "process %d ended while fay attached to it",
					     (int)session->plan.pid);
		fay_session_destroy(session);
		return code;
	}
	for (size_t i = 0; i < session->plan.zone_count && session->attached; i++) {
		free(session->plan.zones[i].code); /* it is there */
		session->plan.zones[i].code = NULL;
	}
	session->plan.verdict = NULL;
	fay_counting_deinit(&session->counted);
	session->memory = fay_process_memory(session->plan.pid, O_RDONLY);
	*result = session;
	return 0;
}

void *fay_session_global(struct fay_session *session, size_t *size)
{
	*size = session->plan.geometry.global_size;
	return session->install.shm
		       ? (char *)session->install.shm + session->plan.geometry.global_offset
		       : NULL;
}

struct fay_shm_control *fay_session_shm(struct fay_session *session, size_t *size)
{
	*size = session->plan.shm_size;
	return session->install.shm;
}

uint64_t fay_session_longest_pause(const struct fay_session *session)
{
	return session->longest_pause;
}
