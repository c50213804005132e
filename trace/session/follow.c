/* SPDX-License-Identifier: MIT */
/*
 * What comes after a trace has begun: programs that followed processes execute (--follow),
 * processes of a name (--comm NAME --wait), and modules that traced processes load (dlopen). Each
 * is attached to as in the beginning, by a session of its own; what does not have a function that
 * is asked for is passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

#define LOOK_EVERY 20000000u /* ns between two looks for new modules, at least */
/* Of the time that looking may take, one part in so many: of a trace in which much changes, and of
 * one in which nothing does, as long as that puts no look off for longer than CALM_MOST ns. */
#define LOOK_SHARE 20u
#define CALM_SHARE 500u
#define CALM_MOST 250000000u
#define NAMES_EVERY 100000000u /* for new processes */
#define FAILURES_SHOWN 10u
#define GONE_AT_ONCE 16u
#define POINTS_AT_ONCE 8192u /* whose memory is then used again */

void fay_trace_forget_session(struct trace *trace, size_t index)
{
	trace->modules_late += fay_session_modules_late(trace->sessions[index]);
	struct fay_target **grown = realloc(trace->gone, (trace->gone_count + 1) * sizeof(*grown));
	fay_trace_budget_forget(trace, trace->sessions[index]);
	fay_traps_forget(&trace->traps, trace->sessions[index]);
	fay_session_destroy(trace->sessions[index]);
	fay_target_forget(trace->targets[index]);
	if (grown) {
		trace->gone = grown;
		trace->gone[trace->gone_count++] = trace->targets[index];
	} else {
		/* its functions have no names in the result */
		fay_target_close(trace->targets[index]);
	}
	free(trace->stack_tables[index]);
	size_t last = --trace->session_count;
	trace->sessions[index] = trace->sessions[last];
	trace->targets[index] = trace->targets[last];
	trace->stack_tables[index] = trace->stack_tables[last];
}

/* Sessions that nobody has any more are merged and forgotten. */
static int retire_gone(struct trace *trace, struct fay_error *error)
{
	bool gone[FAY_TARGETS_MAX];
	fay_sessions_let_go(trace->sessions, trace->session_count, gone);
	for (size_t i = trace->session_count; i-- > 0;) {
		size_t size;
		if (!gone[i])
			continue;
		fay_session_run(trace->sessions[i], FAY_PROBE_END);
		if (fay_aggregator_retire(trace->aggregator,
					  fay_session_shm(trace->sessions[i], &size), error))
			return error->code;
		fay_trace_forget_session(trace, i);
	}
	return FAY_OK;
}

/* Followed, programs come and go by the thousand: they are let go of before the last place is
 * taken, some at once. */
bool fay_trace_make_room(struct trace *trace, struct fay_error *error)
{
	size_t most = trace->follow ? trace->kept_sessions + GONE_AT_ONCE : FAY_TARGETS_MAX;
	bool many = trace->follow && trace->new_points >= POINTS_AT_ONCE;
	if (!many && trace->session_count < (most < FAY_TARGETS_MAX ? most : FAY_TARGETS_MAX))
		return true;
	if (retire_gone(trace, error))
		return false;
	trace->kept_sessions = trace->session_count;
	trace->new_points = 0;
	if (trace->session_count < FAY_TARGETS_MAX)
		return true;
	fay_error_set(error, FAY_E_LIMIT, "more than %u processes at once", FAY_TARGETS_MAX);
	return false;
}

void fay_trace_watch(struct trace *trace, pid_t pid)
{
	size_t i = 0;
	while (i < trace->watched_count && trace->watched[i].pid != pid)
		i++;
	if (i == TRACE_WATCHED_MAX)
		return;
	if (i == trace->watched_count)
		trace->watched[trace->watched_count++] = (struct trace_watched){ 0 };
	trace->watched[i].pid = pid;
	trace->watched[i].modules = fay_process_modules(pid);
	trace->watched[i].born = fay_process_start(pid);
}

/* 0: it has ended. */
static uint64_t modules_of(const struct trace_watched *watched)
{
	return watched->born && fay_process_start(watched->pid) == watched->born
		       ? fay_process_modules(watched->pid)
		       : 0;
}

bool fay_trace_watches(const struct trace *trace)
{
	for (size_t i = 0; i < trace->watched_count; i++)
		if (modules_of(&trace->watched[i]))
			return true;
	return false;
}

static bool has_session(const struct trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->session_count; i++)
		if (fay_target_pid(trace->targets[i]) == pid)
			return true;
	return false;
}

static void attach_later(struct trace *trace, pid_t pid, enum trace_attach when)
{
	struct fay_error error = { 0 };
	bool known = has_session(trace, pid);
	if (!fay_trace_attach_one(trace, pid, when, &error) || error.code == FAY_E_USAGE)
		return;
	if (known && !fay_process_start(pid)) /* it has ended meanwhile, with its new modules */
		return;
	if (++trace->later_failures <= FAILURES_SHOWN || trace->verbose)
		fprintf(trace->messages, "fay: process %d: %s: %s\n", pid,
			known ? "modules that it has loaded are not traced" : "not traced",
			error.message);
}

bool fay_trace_is_traced(const struct trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->session_count; i++)
		if (fay_target_pid(trace->targets[i]) == pid &&
		    fay_session_target_alive(trace->sessions[i]))
			return true;
	for (size_t i = 0; i < trace->trapped_count; i++)
		if (fay_target_pid(trace->trapped[i].target) == pid &&
		    fay_session_target_alive(trace->trapped[i].session))
			return true;
	return false;
}

/* Looks at every process, so not often. */
bool fay_trace_children_run(struct trace *trace)
{
	uint64_t now = fay_monotonic();
	if (now < trace->next_children)
		return trace->children_run;
	trace->next_children = now + NAMES_EVERY;
	trace->children_run = false;
	for (size_t i = 0; i < trace->session_count && !trace->children_run; i++)
		trace->children_run =
			fay_trace_counts_children(trace, fay_target_pid(trace->targets[i])) &&
			fay_session_in_use(trace->sessions[i]);
	return trace->children_run;
}

/* --- --comm NAME --wait --- */

static bool is_seen(const struct trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->seen_count; i++)
		if (trace->seen[i] == pid)
			return true;
	return false;
}

/* A process that is gone, or has another name by now, may come again. */
static void forget_unlisted(struct trace *trace, const pid_t *pids, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < trace->seen_count; i++) {
		bool listed = false;
		for (size_t k = 0; k < count && !listed; k++)
			listed = pids[k] == trace->seen[i];
		if (listed)
			trace->seen[kept++] = trace->seen[i];
	}
	trace->seen_count = kept;
}

static void look_for_names(struct trace *trace)
{
	pid_t pids[4 * FAY_TARGETS_MAX];
	const size_t max = sizeof(pids) / sizeof(pids[0]);
	size_t count = fay_trace_find_named(trace, pids, max);
	count = count < max ? count : max;
	if (!trace->seen && !(trace->seen = calloc(max, sizeof(*trace->seen))))
		return;
	forget_unlisted(trace, pids, count);
	for (size_t i = 0; i < count && trace->seen_count < max; i++) {
		if (is_seen(trace, pids[i]))
			continue;
		trace->seen[trace->seen_count++] = pids[i];
		/* A child of one that is followed is counted there. */
		if (fay_trace_is_traced(trace, pids[i]) ||
		    (fay_trace_counts_children(trace, pids[i]) &&
		     fay_sessions_include(trace->sessions, trace->session_count, pids[i])) ||
		    (trace->follower.follower &&
		     fay_process_tracer(pids[i]) == trace->follower.follower))
			continue;
		attach_later(trace, pids[i], TRACE_ATTACH_LATER);
		if (trace->follower.follower)
			fay_follow_take(&trace->follower, pids[i]);
	}
}

/* --- modules --- */

/* What is followed may execute another program as soon as it goes on: it is taken again before. */
void fay_trace_attach_modules(struct trace *trace, pid_t pid, const struct trace_waiting *waiting)
{
	bool followed = trace->follower.follower != 0;
	if (trace->plan && trace->plan->addresses)
		fay_addresses_take(&trace->addresses, pid);
	fay_trace_stacks_update(trace, pid);
	if (followed)
		fay_follow_release(&trace->follower, pid);
	fay_trace_drop_unloaded(trace, pid);
	fay_traps_release_unloaded(&trace->traps, pid);
	attach_later(trace, pid, TRACE_ATTACH_LATER);
	if (!followed)
		fay_trace_modules_answer(trace, waiting);
	fay_trace_retire_empty(trace, pid);
	if (!followed)
		return;
	fay_follow_retake(&trace->follower, pid);
	fay_trace_modules_answer(trace, waiting);
}

/* ns of ours: waiting for a processor is not a look's cost. */
static uint64_t processor_time(void)
{
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* A program that has become another has other modules, too, but is left alone unless that was asked
 * for. Returns how long looking took, without attaching. */
static uint64_t look_at_watched(struct trace *trace)
{
	uint64_t took = 0;
	for (size_t i = trace->watched_count; i-- > 0;) {
		struct trace_watched *watched = &trace->watched[i];
		uint64_t since = processor_time(), modules = modules_of(watched);
		took += processor_time() - since;
		if (watched->waits && (!modules || !fay_session_target_alive(watched->waits)))
			fay_trace_modules_leave(trace, watched);
		if (!modules)
			*watched = trace->watched[--trace->watched_count];
		else if (modules != watched->modules &&
			 (trace->follow || trace->wait || fay_trace_is_traced(trace, watched->pid)))
			fay_trace_attach_modules(trace, watched->pid, NULL);
	}
	return took;
}

uint64_t fay_trace_pause(uint64_t used, uint64_t least, bool calm)
{
	uint64_t rest = LOOK_SHARE * used, longer = calm ? CALM_SHARE * used : 0;
	longer = longer < CALM_MOST ? longer : CALM_MOST;
	rest = rest > longer ? rest : longer;
	return rest > least ? rest : least;
}

/* So often that a module is found soon, and so rarely that looking takes no more than its share of
 * the time. */
static void look_for_modules(struct trace *trace)
{
	uint64_t used = look_at_watched(trace) * (trace->calm ? FAY_CALM_LOOK : 1);
	trace->next_look = fay_monotonic() + fay_trace_pause(used, LOOK_EVERY, true);
}

void fay_trace_hold_forked(struct trace *trace)
{
	if (!trace->traps.set || !trace->follower.follower)
		return;
	if (fay_traps_for_children(&trace->traps))
		fay_follow_hold(&trace->follower);
	else
		fay_trace_traps_too_many(trace);
}

static void follow_one(struct trace *trace, const struct fay_followed *followed)
{
	if (followed->parent) {
		if (!fay_traps_set_child(&trace->traps, followed->parent, followed->pid))
			fay_trace_traps_too_many(trace);
		fay_follow_leave(&trace->follower, followed->pid);
		return;
	}
	attach_later(trace, followed->pid, TRACE_ATTACH_EXECUTED);
	fay_follow_take(&trace->follower, followed->pid);
}

int fay_trace_follow_tick(struct trace *trace, struct fay_error *error)
{
	uint64_t now = fay_monotonic();
	struct fay_followed followed;
	while (trace->follower.follower && fay_follow_next(&trace->follower, &followed)) {
		if (!fay_trace_make_room(trace, error))
			return error->code;
		follow_one(trace, &followed);
	}
	if (trace->wait && now >= trace->next_names) {
		trace->next_names = now + NAMES_EVERY;
		look_for_names(trace);
	}
	fay_trace_modules_tick(trace);
	if (now >= trace->next_look)
		look_for_modules(trace);
	return FAY_OK;
}
