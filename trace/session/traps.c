/* SPDX-License-Identifier: MIT */
/* Traps in programs, where no jump fits (docs/internals/traps.md): the probes' rows and theirs go
 * into one aggregator, since both fill the same states. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/kernel/kernel.h"

#include "session.h"

#define TRAPS_SHARE 0.05 /* of the processor time, that traps may take unless --budget says more */

static const char *refusal(const struct trace *trace)
{
	if (!trace->plan)
		return "images run in programs alone";
	if (trace->only_inline)
		return "--only-inline";
	if (trace->traps_refused)
		return "the kernel refused them";
	if (trace->save_path)
		return "events that are saved come from probes alone";
	if (!fay_bpf_knows_processes())
		return "fay runs in a PID namespace (a container)";
	return fay_plan_trap_refusal(trace->plan);
}

bool fay_trace_traps_may(const struct trace *trace, pid_t pid)
{
	return !refusal(trace) && fay_trace_has_our_numbers(pid);
}

/* Those whose programs do not run any more, and whose functions have names in the result. */
static void retire_trapped(struct trace *trace)
{
	for (size_t i = trace->trapped_count; i-- > 0;) {
		struct trace_trapped *trapped = &trace->trapped[i];
		struct fay_target **grown;
		if (fay_session_target_alive(trapped->session) ||
		    !(grown = realloc(trace->gone, (trace->gone_count + 1) * sizeof(*grown))))
			continue;
		fay_traps_forget(&trace->traps, trapped->session);
		fay_session_destroy(trapped->session);
		fay_target_forget(trapped->target);
		trace->gone = grown;
		trace->gone[trace->gone_count++] = trapped->target;
		*trapped = trace->trapped[--trace->trapped_count];
	}
}

bool fay_trace_traps_keep(struct trace *trace)
{
	size_t last = trace->session_count - 1;
	if (fay_session_point_count(trace->sessions[last]) ||
	    !fay_session_trap_count(trace->sessions[last]))
		return false;
	if (trace->trapped_count == FAY_TARGETS_MAX)
		retire_trapped(trace);
	if (trace->trapped_count == FAY_TARGETS_MAX)
		return false;
	trace->trapped[trace->trapped_count++] =
		(struct trace_trapped){ trace->sessions[last], trace->targets[last] };
	free(trace->stack_tables[last]);
	trace->session_count--;
	return true;
}

/* The programs in the kernel, with their state among those that are merged. */
static int load(struct trace *trace, const struct fay_trap *const *traps, uint32_t count,
		struct fay_error *error)
{
	struct trace_bpf *bpf = &trace->bpf[trace->bpf_count];
	struct fay_bpf_options options = { .tids = trace->tids,
					   .tid_count = trace->tid_count,
					   .traps = traps,
					   .trap_count = count,
					   .given_up = &trace->interrupted };
	size_t size;
	if (fay_plan_generate_bpf(trace->plan, &options, &bpf->object, error))
		return error->code;
	trace->bpf_count++;
	bpf->object.values[FAY_BPF_VALUE_BOOT] = trace->epoch;
	if (fay_bpf_session_create(&bpf->object, &bpf->session, error))
		return error->code;
	struct fay_shm_control *shm = fay_bpf_session_shm(bpf->session, &size);
	return fay_aggregator_add(trace->aggregator, shm, size, 0, error);
}

/* The programs for what was taken up. */
static void make_programs(struct trace *trace, struct fay_error *first)
{
	const struct fay_trap *programs[FAY_TRAP_PROGRAMS_MAX];
	uint32_t count = fay_traps_new(&trace->traps, programs);
	trace->traps_refused |= count && load(trace, programs, count, first);
	if (count)
		fay_traps_made(&trace->traps, trace->traps_refused
						      ? NULL
						      : trace->bpf[trace->bpf_count - 1].session);
}

/* What was taken up. */
static void set_traps(struct trace *trace, struct fay_error *first)
{
	make_programs(trace, first);
	fay_traps_set(&trace->traps, first);
}

static void take(struct trace *trace, const struct fay_session *session, pid_t pid)
{
	trace->traps.places_only = trace->plan && trace->plan->keeps_calls;
	fay_traps_take(&trace->traps, session, pid);
}

void fay_trace_traps_foresee(void *context, const struct fay_session *session)
{
	struct trace *trace = context;
	uint64_t since = fay_monotonic();
	if (trace->traps_refused || !fay_session_trap_count(session))
		return;
	take(trace, session, trace->pids[0]);
	make_programs(trace, &trace->traps_failure);
	fay_traps_put_back(&trace->traps, session);
	fay_trace_stage(trace, "make traps", since);
}

/* Returns how many points are left out where traps might be set, if they were allowed. */
static size_t take_traps(struct trace *trace)
{
	size_t skipped = 0;
	for (size_t i = 0; i < trace->session_count; i++) {
		skipped += fay_session_skipped_count(trace->sessions[i]);
		take(trace, trace->sessions[i], fay_target_pid(trace->targets[i]));
	}
	for (size_t i = 0; i < trace->trapped_count; i++)
		take(trace, trace->trapped[i].session, fay_target_pid(trace->trapped[i].target));
	return skipped;
}

static void trapped_deinit(struct trace_trapped *trapped)
{
	fay_session_destroy(trapped->session);
	fay_target_close(trapped->target);
}

/* Nothing is traced in the process: it is forgotten. */
static int drop(struct trace *trace, size_t index, const struct fay_error *why,
		struct fay_error *error)
{
	struct trace_trapped *trapped = &trace->trapped[index];
	const struct fay_skipped_point *point = fay_session_skipped(trapped->session, 0);
	int code = fay_error_set(
		error, FAY_E_REFUSED,
		"%s cannot be traced: it %s; by a trap in the kernel neither: %s", point->function,
		point->reason, why->code ? why->message : "there are too many, or it was given up");
	trapped_deinit(trapped);
	*trapped = trace->trapped[--trace->trapped_count];
	return code;
}

/* Processes in which nothing is traced are named. */
static int drop_empty(struct trace *trace, const struct fay_error *why, struct fay_error *error)
{
	for (size_t i = trace->trapped_count; i-- > 0;) {
		pid_t pid = fay_target_pid(trace->trapped[i].target);
		if (fay_traps_any(&trace->traps, trace->trapped[i].session))
			continue;
		drop(trace, i, why, error);
		if (trace->pid_count > 1)
			fprintf(trace->messages, "fay: process %d is not traced: %s\n", pid,
				error->message);
	}
	return trace->session_count + trace->trapped_count ? FAY_OK : error->code;
}

int fay_trace_traps_attach(struct trace *trace, struct fay_error *error)
{
	struct fay_error first = trace->traps_failure;
	const char *why = refusal(trace);
	uint64_t since = fay_monotonic();
	size_t skipped = take_traps(trace);
	trace->attached_since = since;
	if (trace->traps.count) {
		/* their programs are compiled meanwhile */
		if (fay_trace_budget_settle(trace, error))
			return error->code;
		set_traps(trace, &first);
		fay_trace_stage(trace, "set traps", since);
	}
	if (why && skipped && trace->verbose && !trace->only_inline)
		fprintf(trace->messages, "fay: no traps are set in the kernel instead: %s\n", why);
	else if (first.code && trace->session_count && !trace->interrupted)
		fprintf(trace->messages, "fay: traps in the kernel instead of jumps: %s\n",
			first.message);
	return trace->trapped_count ? drop_empty(trace, &first, error) : FAY_OK;
}

void fay_trace_traps_too_many(struct trace *trace)
{
	if (!trace->traps_slow)
		fprintf(trace->messages,
			"fay: what is forked or executed from now on would wait 10 ms for the trap "
			"of each function that no jump reaches: there these are not traced; ask "
			"for "
			"no more than %u such functions to have them\n",
			FAY_TRAPS_LATER);
	trace->traps_slow = true;
}

static bool is_too_slow(struct trace *trace, const struct fay_session *session)
{
	size_t functions = 0, before = SIZE_MAX;
	for (size_t i = 0; i < fay_session_trap_count(session); i++) {
		functions += fay_session_trap(session, i)->skipped != before;
		before = fay_session_trap(session, i)->skipped;
	}
	bool slow =
		trace->follow && functions > FAY_TRAPS_LATER && fay_session_point_count(session);
	if (slow)
		fay_trace_traps_too_many(trace);
	return slow;
}

int fay_trace_traps_later(struct trace *trace, const struct fay_session *session, pid_t pid,
			  struct fay_error *error)
{
	struct fay_error first = { 0 };
	size_t last = trace->trapped_count - 1;
	if (!fay_session_trap_count(session) || is_too_slow(trace, session))
		return FAY_OK;
	fay_traps_take(&trace->traps, session, pid);
	set_traps(trace, &first);
	fay_trace_hold_forked(trace);
	return trace->trapped_count && trace->trapped[last].session == session &&
			       !fay_traps_any(&trace->traps, session)
		       ? drop(trace, last, &first, error)
		       : FAY_OK;
}

void fay_trace_traps_tick(struct trace *trace)
{
	double share = trace->budget > 0 ? trace->budget : trace->unbounded ? 0 : TRAPS_SHARE;
	uint64_t now = fay_monotonic();
	fay_traps_check(&trace->traps, now);
	fay_traps_look(&trace->traps, share, now);
}

void fay_trace_traps_stop(struct trace *trace)
{
	fay_traps_check(&trace->traps, UINT64_MAX);
	fay_traps_count(&trace->traps, false);
}

bool fay_trace_traps_alive(const struct trace *trace)
{
	for (size_t i = 0; i < trace->trapped_count; i++)
		if (fay_session_target_alive(trace->trapped[i].session))
			return true;
	return false;
}

void fay_trace_traps_deinit(struct trace *trace)
{
	for (size_t i = 0; i < trace->trapped_count; i++)
		trapped_deinit(&trace->trapped[i]);
	fay_traps_deinit(&trace->traps);
}
