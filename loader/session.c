/* SPDX-License-Identifier: MIT */
/*
 * A session's beginning: plan without stopping anything, install in one stop. Its end:
 * session_end.c.
 *
 * Planning reads the target while it runs, so installing re-checks what the plan rests on and, if
 * something changed (another fay patched the same function, a module moved), the plan is made anew,
 * a few times.
 */
#include "session.h"

#include "keeper.h"
#include "thread.h"
#include "vectors.h"

#include <elf.h>
#include <errno.h>
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
#define HWCAP2_FSGSBASE 2u
/* struct pthread.tid on x86-64, glibc 2.3 to 2.41; checked against every thread */
#define TID_OFFSET_GLIBC 0x2d0

static void lay_out_state(struct fay_session *session)
{
	const struct fay_schema *schema = &session->verdict->schema;
	struct fay_shm_control *geometry = &session->geometry;
	uint64_t largest = 0, spill = SPILL_MIN;
	bool spills = false;

	for (uint32_t i = 0; i < schema->state_count; i++)
		if (schema->states[i].kind != FAY_STATE_CELL) {
			spills = true;
			if (schema->states[i].size > largest)
				largest = schema->states[i].size;
		}
	while (spill < 4 * largest)
		spill *= 2;
	if (session->options.ring_bytes)
		spill = session->options.ring_bytes;
	for (uint32_t i = 0; session->options.costs && i < session->point_count; i++)
		session->points[i].cost = i;
	*geometry = (struct fay_shm_control){
		.magic = FAY_SHM_MAGIC,
		.version = 1,
		.slot_max = session->options.slot_max,
		.global_offset = FAY_SHM_PAGE,
		.global_size = schema->global_size,
		.local_size = schema->local_size,
		.slots_offset = FAY_SHM_PAGE + fay_round_up(schema->global_size, PAGE),
		.cost_count = session->options.costs ? (uint32_t)session->point_count : 0,
		.cost_offset = (FAY_SLOT_HEADER + schema->local_size + 63u) & ~63u,
		.spill_size = spills ? spill : 0,
		.when_full = session->options.when_full,
	};
	geometry->spill_offset = fay_round_up(
		geometry->cost_offset + geometry->cost_count * sizeof(struct fay_place_cost), PAGE);
	geometry->slot_stride = geometry->spill_offset + geometry->spill_size;
	session->shm_size = geometry->slots_offset + geometry->slot_max * geometry->slot_stride;
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
		uint32_t missing = verdict->probes[i].cpu_features & ~fay_cpu_features();

		if (missing) {
			const char *name = fay_cpu_feature_name((unsigned)__builtin_ctz(missing));

			return fay_error_set(error, FAY_E_REFUSED,
					     "probe %u (%s) uses %s instructions, which this "
					     "machine does not have",
					     i, verdict->probes[i].pattern,
					     name ? name : "unknown");
		}

		if (refusal)
			return fay_error_set(error, FAY_E_REFUSED, "probe %u (%s) %s", i,
					     verdict->probes[i].pattern, refusal);
	}
	return 0;
}

/* Whether rings can be as the options say. */
static int check_rings(const struct fay_session *session, struct fay_error *error)
{
	const struct fay_schema *schema = &session->verdict->schema;
	const struct fay_attach_options *options = &session->options;
	uint64_t bytes = options->ring_bytes;

	if (bytes && (bytes < 4096 || bytes > FAY_RING_BYTES_MAX || (bytes & (bytes - 1))))
		return fay_error_set(error, FAY_E_USAGE,
				     "a ring of %" PRIu64 " bytes cannot be made", bytes);
	if ((unsigned)options->when_full > FAY_FULL_OVERWRITE)
		return fay_error_set(error, FAY_E_USAGE, "unknown way %u to deal with a full ring",
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
	uint64_t hwcap2;
	bool readable;

	if (session->pid_start == 0)
		return fay_error_set(error, FAY_E_USAGE, "no such process: %d", (int)session->pid);
	if (session->pid == getpid())
		return fay_error_set(error, FAY_E_USAGE, "a process cannot trace itself");
	if (runs_under_valgrind(session->pid))
		return fay_error_set(
			error, FAY_E_REFUSED,
			"process %d runs under valgrind, which would crash it at a patched "
			"function: valgrind executes translations of the code that it knows",
			(int)session->pid);
	/* Of a program of 32 bits these words are narrower, and the size of a program header is not
	 * found there. */
	if (fay_process_auxiliary(session->pid, AT_PHENT, &readable) != sizeof(Elf64_Phdr) &&
	    readable)
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d runs a 32-bit program; only x86-64 is supported",
				     (int)session->pid);
	hwcap2 = fay_process_auxiliary(session->pid, AT_HWCAP2, &readable);
	if (readable && !(hwcap2 & HWCAP2_FSGSBASE))
		return fay_error_set(error, FAY_E_REFUSED,
				     "this CPU or kernel does not let programs read the fs base "
				     "(FSGSBASE, Linux 5.9); the dispatcher needs that");
	if (fay_thread_field(session->pid, session->pid, "Seccomp:") > 0)
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d runs under seccomp, which may kill it for the "
				     "system calls that attaching needs",
				     (int)session->pid);
	return 0;
}

static size_t usable_points(const struct fay_session *session)
{
	size_t count = 0;

	for (size_t i = 0; i < session->point_count; i++)
		count += session->points[i].usable && session->points[i].probe_count;
	return count;
}

static bool is_worth_it(const struct fay_session *session)
{
	return session->options.modules_alone ? fay_rendezvous_hooked(session)
					      : usable_points(session) != 0;
}

static int nothing_usable(const struct fay_session *session, struct fay_error *error)
{
	const struct fay_skipped_point *first = session->skipped;

	if (session->options.modules_alone)
		return fay_error_set(error, FAY_E_REFUSED, "process %d: %s", (int)session->pid,
				     session->unhooked);
	if (session->skipped_count == 0)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the image has no probe on a place in the program, only "
				     "begin, end or timer probes");
	if (session->skipped_count == 1)
		return fay_error_set(error, FAY_E_REFUSED, "%s cannot be traced: it %s",
				     first->function, first->reason);
	return fay_error_set(
		error, FAY_E_REFUSED, "none of the %zu functions can be traced; the first, %s, %s",
		session->skipped_count, first ? first->function : "?", first ? first->reason : "?");
}

void fay_session_forget_plan(struct fay_session *session)
{
	fay_zone_plans_deinit(session);
	fay_text_deinit(&session->text);
	fay_rseqs_deinit(&session->rseqs);
	free(session->skipped);
	session->skipped = NULL;
	session->site_count = session->order_count = 0;
	session->skipped_count = session->shared_points = 0;
}

static int plan(struct fay_session *session, struct fay_error *error)
{
	struct fay_zones present = { 0 };
	struct fay_maps maps;
	int memory, code = fay_maps_read(session->pid, &maps, error);

	if (code)
		return code;
	memory = fay_process_memory(session->pid, O_RDONLY);
	if (memory < 0) {
		code = fay_error_set(
			error, FAY_E_REFUSED,
			"memory of process %d: %s (needs the same user, or CAP_SYS_PTRACE)",
			(int)session->pid, strerror(errno));
	} else {
		code = fay_zones_read(&maps, memory, &present, error);
		if (!code)
			code = fay_rseqs_read(session->target, memory, &session->rseqs, error);
		if (!code)
			code = fay_sites_plan(session, &present, memory, error);
		close(memory);
	}
	if (!code && is_worth_it(session))
		code = fay_zones_build(session, &maps, error);
	if (!code && !is_worth_it(session))
		code = nothing_usable(session, error);
	session->geometry.modules_follow = fay_rendezvous_hooked(session);
	fay_zones_deinit(&present);
	fay_maps_deinit(&maps);
	return code;
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
	struct fay_zone_removal removal = { .session = session->id };
	struct fay_stop stop;
	uint64_t pause;
	int code;

	if (fay_keeper_orphaned())
		return fay_error_set(error, FAY_E_INTERNAL, "fay is gone");
	code = fay_stop_all(session->pid, session->options.stop_timeout_ms,
			    session->options.tracer_wait_ms, &stop, error);
	if (code)
		return code;
	code = fay_session_install(session, &stop, error);
	session->no_room = code && stop.no_room;
	pause = fay_stop_release(&stop);
	if (pause > session->longest_pause)
		session->longest_pause = pause;
	if (!code && fay_keeper_orphaned())
		fay_zones_remove(session->pid, &removal, 1, session->options.stop_timeout_ms,
				 session->options.tracer_wait_ms, NULL, NULL);
	return code;
}

/* Places that are held in each attempt will be so: Go's stacks, for one, all end in the address of
 * runtime.goexit plus one. They are left out. */
static void give_up_held(struct fay_session *session)
{
	for (size_t i = 0; i < session->held_count && session->given_up_count < FAY_HELD_MAX; i++)
		session->given_up[session->given_up_count++] = session->held[i];
	session->held_count = 0;
}

static int attempt(struct fay_session *session, struct fay_error *error)
{
	struct attempt_context context = { session, error };
	int code = plan(session, error);

	if (!code)
		code = fay_session_prepare(session, error);
	return code ? code : fay_keeper_run(install_stopped, &context, error);
}

static bool is_same_function(const struct fay_function *one, const struct fay_function *other)
{
	return one->address == other->address && !strcmp(one->name, other->name) &&
	       !strcmp(one->path, other->path);
}

/*
 * Whether another session of ours has its jump at this function now, maybe under another trace's,
 * has taken it out for good, or has found that it cannot be patched, and said so. (A module that
 * was unloaded and loaded again lies there without a jump.)
 */
static bool is_left_to(const struct fay_session *other, const struct fay_point *point,
		       const struct fay_zones *present)
{
	for (size_t i = 0; i < other->point_count; i++) {
		const struct fay_point *theirs = &other->points[i];
		const struct fay_site *site;
		uint8_t now[FAY_JUMP_BYTES], jump[FAY_JUMP_BYTES];

		if (!theirs->probe_count)
			continue;
		if (!theirs->usable && !theirs->unloaded &&
		    is_same_function(&theirs->function, &point->function))
			return true;
		if (!theirs->usable || theirs->unloaded ||
		    theirs->function.address != point->function.address)
			continue;
		if (theirs->taken_out)
			return true;
		site = &other->sites[theirs->first_site];
		fay_patch_encode(&site->patch, jump);
		return pread(other->memory, now, site->patch.size, (off_t)site->site) ==
			       (ssize_t)site->patch.size &&
		       fay_zones_cover(present, site->site, now, jump, site->patch.size);
	}
	return false;
}

/* Leaves to other sessions what they have; hooks stay, each session needs its own. */
static int leave_to_others(struct fay_session *session, struct fay_error *error)
{
	struct fay_zones present = { 0 };
	size_t kept = 0, wanted = 0;
	struct fay_maps maps;
	int code = fay_maps_read(session->pid, &maps, error);

	if (code)
		return code;
	code = fay_zones_read(&maps, session->options.beside[0]->memory, &present, error);
	fay_maps_deinit(&maps);
	if (code)
		return code;
	for (size_t i = 0; i < session->point_count; i++) {
		struct fay_point *point = &session->points[i];

		for (size_t k = 0; k < session->options.beside_count && point->probe_count; k++)
			if (is_left_to(session->options.beside[k], point, &present))
				point->probe_count = 0;
		if (!point->probe_count && !point->hook && !point->helper) {
			fay_point_deinit(point);
			continue;
		}
		wanted += point->probe_count != 0;
		session->points[kept++] = *point;
	}
	session->point_count = session->folded_count = kept;
	fay_zones_deinit(&present);
	return wanted ? 0
		      : fay_error_set(error, FAY_E_USAGE, "process %d: nothing is left to trace",
				      (int)session->pid);
}

/* What is reserved there is for slot_max threads: fewer need less, where the program's address
 * space or memory is limited. False: it would be for too few. */
static bool reserve_less(struct fay_session *session)
{
	if (session->options.slot_max / SLOTS_LESS < SLOTS_MIN)
		return false;
	session->options.slot_max /= SLOTS_LESS;
	lay_out_state(session);
	session->records_size = fay_records_size(session);
	return true;
}

static int attach(struct fay_session *session, struct fay_error *error)
{
	int code = check_verdict(session->verdict, error);

	if (!code)
		code = check_target(session, error);
	if (!code)
		code = fay_points_resolve(session, error);
	if (!code && session->options.beside_count)
		code = leave_to_others(session, error);
	if (!code && session->options.costs && session->point_count > FAY_COSTS_MAX)
		code = fay_error_set(
			error, FAY_E_LIMIT,
			"process %d: the cost of %zu functions cannot be measured, %u at most",
			(int)session->pid, session->point_count, FAY_COSTS_MAX);
	if (code)
		return code;
	lay_out_state(session);
	fay_dispatch_choose(session->verdict, &session->dispatch);
	session->reads_time = session->options.costs;
	for (uint32_t i = 0; i < session->verdict->probe_count; i++)
		session->reads_time |= (session->verdict->probes[i].event_fields &
					(FAY_FIELD_TIME | FAY_FIELD_DURATION)) != 0;
	if (session->reads_time)
		fay_clock_calibrate(&session->time_multiplier, &session->time_offset);
	session->time_offset += (uint64_t)session->options.clock;
	for (unsigned round = 0; round < ATTEMPTS; round++) {
		fay_session_forget_plan(session);
		session->no_room = false;
		code = session->options.plan_only ? plan(session, error) : attempt(session, error);
		if (session->no_room && reserve_less(session))
			continue;
		if (session->no_room)
			code = fay_error_set(
				error, FAY_E_REFUSED,
				"process %d has no room for the %zu MiB that fay has to reserve "
				"there: its address space (RLIMIT_AS), its data (RLIMIT_DATA) or "
				"the machine's memory (vm.overcommit_memory) is limited",
				(int)session->pid,
				(session->shm_size + session->records_size) >> 20);
		if (code >= 0)
			break;
		if (round >= HELD_ATTEMPTS)
			give_up_held(session);
		usleep(500u << (round < 6 ? round : 6));
	}
	fay_text_deinit(&session->text);
	session->attached = code == 0 && !session->options.plan_only;
	if (session->attached)
		code = fay_host_create(session, &session->host, error);
	return code < 0 ? (error ? (int)error->code : FAY_E_LIMIT) : code;
}

/* Those of the threads asked for that are in this process. */
static int choose_threads(struct fay_session *session, struct fay_error *error)
{
	size_t kept = 0;

	if (session->options.tid_count > FAY_TIDS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "more than %u threads", FAY_TIDS_MAX);
	for (size_t i = 0; i < session->options.tid_count; i++) {
		char path[80];

		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)session->pid,
			 (int)session->options.tids[i]);
		if (access(path, F_OK) == 0)
			session->tids[kept++] =
				(uint32_t)fay_inner_id(session->pid, session->options.tids[i]);
	}
	if (session->options.tid_count && kept == 0)
		return fay_error_set(error, FAY_E_REFUSED, "process %d has no thread %d%s",
				     (int)session->pid, (int)session->options.tids[0],
				     session->options.tid_count > 1 ? ", nor the others" : "");
	session->options.tid_count = kept;
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
	session->target = target;
	session->memory = -1;
	session->verdict = verdict;
	session->pid = fay_target_pid(target);
	session->pid_start = fay_process_start(session->pid);
	session->attach_ticks = fay_ticks_now();
	session->tid_offset = TID_OFFSET_GLIBC;
	session->thread_pointer = true;
	if (options)
		memcpy(&session->options, options,
		       options->size < sizeof(*options) ? options->size : sizeof(*options));
	if (!session->options.slot_max)
		session->options.slot_max = 4096;
	if (!session->options.stop_timeout_ms)
		session->options.stop_timeout_ms = FAY_STOP_TIMEOUT_MS;
	if (!session->options.shared_from)
		session->options.shared_from = SHARED_FROM;
	if (session->options.costs)
		/* the place of a point's cost is in its trampoline */
		session->options.shared_from = UINT32_MAX;
	if (!session->options.tracer_wait_ms)
		session->options.tracer_wait_ms = FAY_TRACER_WAIT_MS;
	if (getrandom(&session->id, sizeof(session->id), 0) != (ssize_t)sizeof(session->id))
		session->id = fay_loader_clock_ns() ^ (uint64_t)getpid() << 40;
	code = check_rings(session, error ? error : &local);
	if (!code)
		code = choose_threads(session, error ? error : &local);
	if (!code)
		code = attach(session, error ? error : &local);
	if (!code || code == FAY_E_USAGE)
		fay_known_remember(session->options.beside_count ? session->options.beside[0]
								 : session,
				   target);
	if (code) {
		/* It was there, and whatever step failed, and how, came of that. */
		if (session->pid_start && fay_process_gone(session->pid))
			code = fay_error_set(error, FAY_E_REFUSED,
					     "process %d ended while fay attached to it",
					     (int)session->pid);
		fay_session_destroy(session);
		return code;
	}
	/* Only what was patched counts as a point. */
	for (size_t i = 0, kept = 0; i < session->point_count; i++) {
		struct fay_point swap = session->points[i];

		if (!swap.usable || !swap.probe_count)
			continue;
		session->points[i] = session->points[kept];
		session->points[kept++] = swap;
	}
	session->verdict = NULL;
	session->memory = fay_process_memory(session->pid, O_RDONLY);
	*result = session;
	return 0;
}

void *fay_session_global(struct fay_session *session, size_t *size)
{
	*size = session->geometry.global_size;
	return session->shm ? (char *)session->shm + session->geometry.global_offset : NULL;
}

struct fay_shm_control *fay_session_shm(struct fay_session *session, size_t *size)
{
	*size = session->shm_size;
	return session->shm;
}

size_t fay_session_point_count(const struct fay_session *session)
{
	return usable_points(session);
}

const struct fay_function *fay_session_point(const struct fay_session *session, size_t index)
{
	return &session->points[index].function;
}

bool fay_session_point_is_shared(const struct fay_session *session, size_t index)
{
	return session->points[index].shared;
}

size_t fay_session_skipped_count(const struct fay_session *session)
{
	return session->skipped_count;
}

const struct fay_skipped_point *fay_session_skipped(const struct fay_session *session, size_t index)
{
	return &session->skipped[index];
}

size_t fay_session_shared_points(const struct fay_session *session)
{
	return session->shared_points;
}

uint64_t fay_session_longest_pause(const struct fay_session *session)
{
	return session->longest_pause;
}
