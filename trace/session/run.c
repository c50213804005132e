/* SPDX-License-Identifier: MIT */
/* While a trace runs: results so far, and what ends it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fay/saved.h"

#include "session.h"

#define DEFAULT_EVERY 1000000000u
#define CALM_PICTURES 300u            /* between pictures that long as one took, of a calm trace */
#define CALM_PICTURE_MOST 3000000000u /* ns */
#define CALM_LEAST 50000000u          /* ns that a step waits */
#define CALM_MOST 200000000u

static bool targets_alive(struct trace *trace)
{
	if (fay_trace_reap(trace)) {
		trace->child = 0;
		trace->child_ended = true;
	}
	fay_trace_executed_tick(trace);
	if (fay_trace_is_kernel(trace) || trace->native)
		return fay_trace_bpf_goes_on(trace);
	if (trace->wait && fay_trace_is_by_name(trace))
		return true;
	if (trace->follow)
		return !trace->follower.ended;
	if (trace->wait && fay_trace_watches(trace))
		return true;
	for (size_t i = 0; i < trace->session_count; i++) {
		if (fay_session_target_alive(trace->sessions[i]))
			return true;
	}
	return fay_trace_children_run(trace) || fay_trace_traps_alive(trace);
}

/* What the root makes of the merged rows, or of the rows collected so far. */
static int draw_finished(struct trace *trace, const struct fay_view *view,
			 const struct fay_result *merged, bool final, struct fay_error *error)
{
	const struct fay_plan *plan = trace->plan;
	struct fay_result finished;
	trace->measured.result_rows = merged->row_count;
	if (!plan || !plan->finishes) {
		trace->output.result(trace->output.context, view, merged, final);
		return FAY_OK;
	}
	if (fay_plan_finish(plan, plan->collects ? &trace->collected : merged, fay_trace_order_name,
			    trace, &finished, error))
		return error->code;
	trace->measured.result_rows = finished.row_count;
	finished.events_lost_reentrant = merged->events_lost_reentrant;
	finished.events_lost_full = merged->events_lost_full;
	finished.events_lost_no_slot = merged->events_lost_no_slot;
	finished.calls_lost = merged->calls_lost;
	trace->output.result(trace->output.context, view, &finished, final);
	fay_result_deinit(&finished);
	return FAY_OK;
}

/* How many events are in the result, by its first count, and how many were lost. */
static void note_picture(struct trace *trace, uint32_t state, const struct fay_result *result)
{
	/* what is merged, which is not yet what is shown where groups are grouped */
	const struct fay_schema *schema =
		trace->plan && trace->plan->regroups && !trace->plan->joins ? trace->schema
									    : trace->shown;
	struct trace_pictured *noted = &trace->pictured, before = *noted;
	*noted =
		(struct trace_pictured){ .at = fay_monotonic(),
					 .spent = trace->spent,
					 .cpu = trace->spent_cpu,
					 .share = before.at ? before.share : -1,
					 .lost = result->events_lost_reentrant +
						 result->events_lost_full +
						 result->events_lost_no_slot + result->calls_lost };
	if (noted->cpu > before.cpu)
		noted->share = (noted->spent - before.spent) / (noted->cpu - before.cpu);
	if (!schema || state >= schema->state_count ||
	    schema->states[state].row_size != result->row_size)
		return;
	const struct fay_schema_state *kind = &schema->states[state];
	const struct fay_schema_column *column = &schema->columns[kind->first_column],
				       *end = column + kind->keys + kind->values;
	while (column < end && column->merge != FAY_MERGE_COUNT)
		column++;
	noted->counts = column < end;
	for (size_t r = 0; noted->counts && r < result->row_count; r++) {
		uint64_t count;
		memcpy(&count, result->rows + r * result->row_size + column->offset, sizeof(count));
		noted->counted += count;
	}
	uint64_t since = before.at ? before.at : trace->attached_since;
	if (noted->counted >= before.counted && noted->at > since)
		noted->rate = (double)(noted->counted - before.counted) * 1e9 /
			      (double)(noted->at - since);
}

static int draw_views(struct trace *trace, bool final, struct fay_result *last,
		      struct fay_error *error)
{
	for (size_t i = 0; i < trace->view_count; i++) {
		const struct fay_view *view = &trace->views[i];
		struct fay_result result;
		if (fay_trace_snapshot(trace, view->state, &result, error))
			return error->code;
		if (i == 0 && trace->output.pictures)
			note_picture(trace, view->state, &result);
		int drawn =
			view->streams ? FAY_OK : draw_finished(trace, view, &result, final, error);
		if (last) {
			if (result.threads < last->threads) /* those that filled another state */
				result.threads = last->threads;
			fay_result_deinit(last);
			*last = result;
		} else {
			fay_result_deinit(&result);
		}
		if (drawn)
			return drawn;
	}
	return FAY_OK;
}

int fay_trace_draw(struct trace *trace, bool final, struct fay_result *last,
		   struct fay_error *error)
{
	if (final)
		fay_trace_join_end(trace);
	if (trace->windows && final && fay_trace_windows_end(trace, last, error))
		return error->code;
	if (trace->counted && final && fay_trace_counted_end(trace, last, error))
		return error->code;
	if (trace->plan && (trace->plan->window_step || trace->counted))
		return fay_trace_check_output(trace, error);
	size_t pictured = 0;
	for (size_t i = 0; i < trace->view_count; i++)
		pictured += !trace->views[i].streams;
	if (pictured)
		trace->output.begin(trace->output.context, pictured, final);
	int result = draw_views(trace, final, last, error);
	trace->output.end(trace->output.context);
	return fay_trace_check_output(trace, error) ? (int)error->code : result;
}

/* Whether any event was counted yet, for --timing. */
static bool any_event(struct trace *trace)
{
	for (size_t i = 0; i < trace->session_count; i++) {
		size_t size;
		const struct fay_shm_control *shm = fay_session_shm(trace->sessions[i], &size);
		if (!__atomic_load_n(&shm->slot_next, __ATOMIC_RELAXED))
			continue;
		for (size_t v = 0; v < trace->view_count; v++) {
			struct fay_result result;
			struct fay_error error;
			if (fay_aggregator_snapshot(trace->aggregator, trace->views[v].state,
						    &result, &error))
				continue;
			bool any = false;
			for (size_t b = 0; b < result.row_count * result.row_size && !any; b++)
				any = result.rows[b] != 0;
			fay_result_deinit(&result);
			if (any)
				return true;
		}
	}
	return false;
}

/*
 * Whether a process is there and runs a program. One that is ending gives up its memory before it
 * becomes a zombie; it then has no executable any more (proc(5), /proc/pid/exe).
 */
static bool process_runs(pid_t pid, char comm[FAY_COMM_SIZE + 1])
{
	char path[64], link[2], state = 'Z';
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (readlink(path, link, sizeof(link)) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%16[^)]) %c", comm, &state) != 2)
		state = 'Z';
	fclose(file);
	return state != 'Z' && state != 'X';
}

/* It has given up its memory, or has been waited for. */
static bool is_without_program(pid_t pid)
{
	char path[64], link[2];
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return readlink(path, link, sizeof(link)) < 0 && errno == ENOENT;
}

static void say_end(const struct trace *trace, char *text, size_t size)
{
	int killed = trace->child_ended && WIFSIGNALED(trace->child_status)
			     ? WTERMSIG(trace->child_status)
			     : 0;
	if (killed && sigabbrev_np(killed))
		snprintf(text, size, "ended: killed by SIG%s", sigabbrev_np(killed));
	else if (killed)
		snprintf(text, size, "ended: killed by signal %d", killed);
	else if (trace->child_ended)
		snprintf(text, size, "ended with exit status %d", WEXITSTATUS(trace->child_status));
	else
		snprintf(text, size, "ended");
}

/* All targets are gone: how the command ended, or that a process goes on as another program. */
static const char *how_targets_ended(struct trace *trace)
{
	char comm[FAY_COMM_SIZE + 1] = "", end[64];
	bool sure;
	for (size_t i = 0; i < trace->session_count; i++) {
		pid_t pid = fay_target_pid(trace->targets[i]);
		if ((trace->child_ended && !trace->child) || !process_runs(pid, comm))
			continue;
		snprintf(trace->reason, sizeof(trace->reason),
			 "process %d replaced its program (execve) and is now '%s', which is not "
			 "traced; with --follow it is",
			 pid, comm);
		return trace->reason;
	}
	say_end(trace, end, sizeof(end));
	const struct trace_executed *executed = fay_trace_executed(trace, &sure);
	if (!executed)
		snprintf(trace->reason, sizeof(trace->reason), "the traced program %s", end);
	else if (sure)
		snprintf(trace->reason, sizeof(trace->reason),
			 "process %d replaced its program (execve) by %s%s%s, which was not traced "
			 "(with --follow it is), and %s",
			 executed->pid, executed->last[0] ? "'" : "",
			 executed->last[0] ? executed->last : "another",
			 executed->last[0] ? "'" : "", end);
	else
		snprintf(trace->reason, sizeof(trace->reason),
			 "the traced program %s; it was called '%s' by then: if that is another "
			 "program that it executed, that one was not traced; with --follow it is",
			 end, executed->last);
	return trace->reason;
}

static const char *reason_to_end(struct trace *trace, uint64_t end)
{
	if (trace->interrupted)
		return "interrupted";
	if (end && fay_monotonic() >= end)
		return "time is up";
	if (trace->plan && trace->plan->deadline && fay_trace_now(trace) > trace->plan->deadline)
		return "the query's own deadline passed";
	if (fay_trace_has_all_rows(trace))
		return "the query has all its rows";
	if (fay_trace_budget_exhausted(trace))
		return "the budget leaves nothing to trace";
	if (!targets_alive(trace)) {
		/*
		 * A child of ours that is ending has given up its memory before it can be waited
		 * for: a moment, or seconds where there was much of it and the machine is busy. One
		 * that executes something else is not waited for so long.
		 */
		for (int i = 0; trace->child && !targets_alive(trace) &&
				i < (is_without_program(trace->child) ? 20000 : 100);
		     i++)
			usleep(1000);
		return how_targets_ended(trace);
	}
	return NULL;
}

void fay_trace_run_begin(struct trace *trace)
{
	uint64_t now = fay_monotonic();
	trace->interrupts = trace->interrupted != 0;
	trace->run_since = now;
	trace->attached_since = trace->attached_since ? trace->attached_since : now;
	trace->run_until = trace->duration ? now + trace->duration : 0;
	trace->next_picture = now + (trace->every ? trace->every : DEFAULT_EVERY);
	trace->awaits_first = trace->timing && !fay_trace_is_kernel(trace) && !trace->native;
}

/* Rows and changes of the traced programs, as far as there are any. */
static int take_up(struct trace *trace, struct fay_error *error)
{
	for (size_t i = 0; i < trace->session_count; i++)
		fay_session_tick(trace->sessions[i]);
	fay_trace_native_tick(trace);
	uint64_t polled = fay_trace_now(trace); /* what was ready by then is taken up now */
	if (fay_trace_bpf_poll(trace, error) ||
	    (!fay_trace_is_kernel(trace) && fay_trace_follow_tick(trace, error)))
		return error->code;
	if (fay_trace_poll(trace, error) < 0 || fay_trace_rows_error(trace, error) ||
	    fay_trace_windows_tick(trace, polled, error))
		return error->code;
	fay_trace_join_advance(trace, polled);
	fay_trace_counted_advance(trace, polled);
	return FAY_OK;
}

bool fay_trace_picture_due(struct trace *trace, uint64_t every)
{
	bool over = fay_monotonic() >= trace->next_picture,
	     asked = trace->output.due(trace->output.context, over);
	if (over) {
		trace->next_picture += every;
		trace->analyze_due = trace->every;
	}
	return over || asked;
}

void fay_trace_be_calm(struct trace *trace)
{
	trace->calm = true;
	fay_aggregator_keep_pictures(trace->aggregator);
}

int fay_trace_calm_ms(const struct trace *trace)
{
	uint64_t now = fay_monotonic(), rest = CALM_MOST, look = trace->next_spending;
	if (trace->budget && look < now + rest)
		rest = look > now + CALM_LEAST ? look - now : CALM_LEAST;
	if (trace->next_picture < now + rest)
		rest = trace->next_picture > now ? trace->next_picture - now : 0;
	return (int)((rest + 999999) / 1000000);
}

int fay_trace_step(struct trace *trace, int wait_ms, struct fay_error *error)
{
	if ((trace->end_reason = reason_to_end(trace, trace->run_until)))
		return FAY_OK;
	fay_aggregator_wait(trace->aggregator, trace->awaits_first && wait_ms > 1 ? 1 : wait_ms,
			    trace->also ? trace->also : trace->follower.told,
			    trace->also ? trace->also_seen : trace->follower.seen);
	if (take_up(trace, error))
		return error->code;
	if (trace->awaits_first && any_event(trace)) {
		fay_trace_stage(trace, "first event", trace->run_since);
		fay_trace_stage(trace, "start to first event", trace->started);
		trace->awaits_first = false;
	}
	fay_trace_traps_tick(trace);
	if (fay_trace_budget_tick(trace, error) || fay_trace_analyze_tick(trace, error) ||
	    fay_trace_save_tick(trace, error))
		return error->code;
	if (!fay_trace_picture_due(trace, trace->every ? trace->every : DEFAULT_EVERY))
		return FAY_OK;
	uint64_t used = fay_clock(CLOCK_THREAD_CPUTIME_ID), pause;
	if ((trace->output.pictures || trace->every) && fay_trace_draw(trace, false, NULL, error))
		return error->code;
	pause = CALM_PICTURES * (fay_clock(CLOCK_THREAD_CPUTIME_ID) - used);
	pause = fay_monotonic() + (pause < CALM_PICTURE_MOST ? pause : CALM_PICTURE_MOST);
	if (trace->calm && trace->next_picture < pause)
		trace->next_picture = pause;
	return fay_trace_check_output(trace, error);
}

int fay_trace_run(struct trace *trace, struct fay_error *error)
{
	int result = FAY_OK;
	while (!result && !trace->end_reason)
		result = fay_trace_step(trace, FAY_TRACE_POLL_MS, error);
	return result;
}
