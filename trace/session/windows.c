/* SPDX-License-Identifier: MIT */
/*
 * Windows of time while a trace runs: each is shown once it is over. A thread may have been taken
 * off its processor between an event's time and the moment it is counted, so a window is taken for
 * over a moment after its end, and looked at once more some time later: if events came in late, its
 * rows are shown again.
 *
 * On a cluster a window is shown once all machines that are not late have told what they counted in
 * it, by their own clocks; what comes later, from one that was cut off, shows the windows that it
 * changes again, for as long as machines keep what they could not tell (the lease).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define LATENESS 200000000u /* ns after its end that a window is shown */
/* ns between two looks for windows that were changed, on a cluster */
#define REVISE_EVERY 1000000000u

struct shown {
	uint64_t end;
	struct fay_result rows; /* before the root stage */
};

struct fay_trace_windows {
	uint64_t next;    /* end of the window that is shown next */
	uint64_t first;   /* start of the first window's last step: nothing before it is shown */
	uint64_t horizon; /* ns after its end that a window is forgotten */
	/* on a cluster: where the earliest row lies that was merged since windows were looked at
	 * again; when to do that */
	uint64_t changed_from, next_revision;
	struct shown *shown;
	size_t shown_count;
	/*
	 * Where the query counts events: those of rows before `counted_below`, whose windows were
	 * looked at for the last time when it passed them, and those that were forgotten. What
	 * there is more of them at the end came too late.
	 */
	bool counts;
	uint32_t count_offset;
	uint64_t counted_below, counted, forgotten;
};

static int show(struct trace *trace, const struct fay_result *rows, bool revised,
		struct fay_error *error)
{
	struct fay_result finished;
	if (fay_plan_finish(trace->plan, rows, fay_trace_order_name, trace, &finished, error))
		return error->code;
	for (size_t r = 0; r < finished.row_count; r++)
		fay_trace_write_row(trace, &trace->views[0], finished.rows + r * finished.row_size,
				    revised);
	fay_result_deinit(&finished);
	return FAY_OK;
}

static bool same(const struct fay_result *a, const struct fay_result *b)
{
	return a->row_count == b->row_count &&
	       !memcmp(a->rows, b->rows, a->row_count * a->row_size);
}

/* The window as it is now; shown again if it changed. */
static int revise(struct trace *trace, const struct fay_result *all, struct shown *one,
		  struct fay_error *error)
{
	struct fay_result rows;
	int result = fay_plan_window(trace->plan, fay_trace_merged_schema(trace), all, one->end,
				     &rows, error);
	if (result)
		return result;
	if (same(&rows, &one->rows)) {
		fay_result_deinit(&rows);
		return FAY_OK;
	}
	fay_result_deinit(&one->rows);
	one->rows = rows;
	return show(trace, &rows, true, error);
}

/* Before this no row's windows are looked at any more: the last one that it lies in has ended so
 * long ago, and was shown. */
static uint64_t settled_below(const struct trace *trace, uint64_t now)
{
	const struct fay_trace_windows *w = trace->windows;
	uint64_t kept = trace->plan->window_width + w->horizon,
		 last = w->next < now ? w->next : now;
	return last > kept ? last - kept : 0;
}

/* Events of rows from `from` to before `to`. */
static uint64_t count_events(const struct trace *trace, const struct fay_result *all, uint64_t from,
			     uint64_t to)
{
	const struct fay_schema *schema = fay_trace_merged_schema(trace);
	uint64_t sum = 0, count;
	size_t end = fay_result_row_from(schema, all, to);
	for (size_t r = fay_result_row_from(schema, all, from); r < end; r++) {
		memcpy(&count, all->rows + r * all->row_size + trace->windows->count_offset,
		       sizeof(count));
		sum += count;
	}
	return sum;
}

/* Rows all of whose windows are over for good by `now`. */
static void count_settled(struct trace *trace, const struct fay_result *all, uint64_t now)
{
	struct fay_trace_windows *w = trace->windows;
	uint64_t kept = trace->plan->window_width + w->horizon,
		 below = now >= kept ? now - kept + 1 : 0;
	if (!w->counts || below <= w->counted_below)
		return;
	w->counted += count_events(trace, all, w->counted_below, below);
	w->counted_below = below;
}

/* Windows that were shown and whose time is up, on a cluster also others that were changed, are
 * looked at again; the former are forgotten. */
static int look_again(struct trace *trace, const struct fay_result *all, uint64_t now,
		      struct fay_error *error)
{
	struct fay_trace_windows *w = trace->windows;
	uint64_t below = settled_below(trace, now);
	size_t done = 0;
	int result = FAY_OK;
	for (size_t i = 0; i < w->shown_count && !result; i++) {
		bool over = w->shown[i].end + w->horizon <= now;
		if (trace->root && !trace->join ? w->shown[i].end > w->changed_from : over)
			result = revise(trace, all, &w->shown[i], error);
		done += over;
	}
	for (size_t i = 0; i < done; i++)
		fay_result_deinit(&w->shown[i].rows);
	w->shown_count -= done;
	memmove(w->shown, w->shown + done, w->shown_count * sizeof(*w->shown));
	w->changed_from = UINT64_MAX;
	w->next_revision = now + REVISE_EVERY;
	count_settled(trace, all, now);
	if (below && w->counts)
		w->forgotten += fay_aggregator_forget_counted(fay_trace_merged(trace), all->state,
							      below, w->count_offset);
	else if (below && trace->root && fay_root_replaces(trace->root))
		fay_root_forget(trace->root, all->state, below);
	else if (below)
		fay_aggregator_forget(fay_trace_merged(trace), all->state, below);
	return result;
}

static uint64_t start_of_row(const struct trace *trace, const struct fay_result *all, size_t row)
{
	uint64_t start;
	memcpy(&start,
	       all->rows + row * all->row_size + fay_trace_merged_schema(trace)->columns[0].offset,
	       sizeof(start));
	return start;
}

/* Where the first step begins that has rows, from `from` on; UINT64_MAX: there is none. */
static uint64_t next_step(const struct trace *trace, const struct fay_result *all, uint64_t from)
{
	size_t row = fay_result_row_from(fay_trace_merged_schema(trace), all, from);
	return row < all->row_count ? start_of_row(trace, all, row) : UINT64_MAX;
}

static int show_window(struct trace *trace, const struct fay_result *all, uint64_t end,
		       struct fay_error *error)
{
	struct fay_result rows;
	if (fay_plan_window(trace->plan, fay_trace_merged_schema(trace), all, end, &rows, error))
		return error->code;
	int result = show(trace, &rows, false, error);
	fay_result_deinit(&rows);
	return result;
}

static int close_window(struct trace *trace, const struct fay_result *all, struct fay_error *error)
{
	struct fay_trace_windows *w = trace->windows;
	struct shown *grown = realloc(w->shown, (w->shown_count + 1) * sizeof(*grown));
	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory for windows");
	w->shown = grown;
	struct shown *one = &grown[w->shown_count];
	one->end = w->next;
	if (fay_plan_window(trace->plan, fay_trace_merged_schema(trace), all, w->next, &one->rows,
			    error))
		return error->code;
	w->shown_count++;
	w->next += trace->plan->window_step;
	return show(trace, &one->rows, false, error);
}

/* Over windows that end by `until`, in which there is nothing, and nothing can come any more. */
static void pass_over(struct trace *trace, const struct fay_result *all, uint64_t until,
		      uint64_t now)
{
	struct fay_trace_windows *w = trace->windows;
	uint64_t step = trace->plan->window_step, width = trace->plan->window_width;
	uint64_t start = next_step(trace, all, w->next < width ? 0 : w->next - width);
	uint64_t over = now > w->horizon ? now - w->horizon : 0;
	over = over < until ? over : until;
	over = over < start ? over : start;
	if (over >= w->next)
		w->next += ((over - w->next) / step + 1) * step;
}

/* Shows every window that ends by `until`. One that is over for good is not kept. A clock that was
 * set may make any number of them. */
static int close_until(struct trace *trace, uint64_t until, uint64_t now, struct fay_result *all,
		       struct fay_error *error)
{
	struct fay_trace_windows *w = trace->windows;
	bool empty = fay_plan_shows_empty_windows(trace->plan);
	if (fay_trace_snapshot(trace, trace->views[0].state, all, error))
		return error->code;
	int result = FAY_OK;
	while (!result && !trace->interrupted) {
		if (!empty)
			pass_over(trace, all, until, now);
		if (w->next > until)
			break;
		if (w->next + w->horizon > now) {
			result = close_window(trace, all, error);
			continue;
		}
		result = show_window(trace, all, w->next, error);
		w->next += trace->plan->window_step;
	}
	return result ? result : look_again(trace, all, now, error);
}

int fay_trace_windows_start(struct trace *trace, struct fay_error *error)
{
	if (!trace->plan || !trace->plan->window_step)
		return FAY_OK;
	uint64_t step = trace->plan->window_step,
		 since = trace->asked ? trace->asked : fay_trace_now(trace);
	if (trace->root)
		since -= fay_root_clock_behind(trace->root);
	trace->windows = calloc(1, sizeof(*trace->windows));
	if (!trace->windows)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	trace->windows->first = since - since % step;
	trace->windows->next = trace->windows->first + step;
	trace->windows->horizon = FAY_WINDOWS_HORIZON + (trace->root ? trace->remote.lease : 0);
	trace->windows->changed_from = UINT64_MAX;
	trace->windows->counts = !trace->root && !trace->plan->joins &&
				 fay_plan_window_count(trace->plan, &trace->windows->count_offset);
	return FAY_OK;
}

/* Looks at what the cluster merged since the last time; returns until when windows are over. */
static uint64_t over_until(struct trace *trace, uint64_t now)
{
	struct fay_trace_windows *w = trace->windows;
	if (!trace->root)
		return now - LATENESS;
	uint64_t below = settled_below(trace, now), settled = below > w->first ? below : w->first;
	uint64_t changed = fay_root_earliest(trace->root, settled),
		 complete = fay_root_complete_until(trace->root);
	w->changed_from = changed < w->changed_from ? changed : w->changed_from;
	complete = complete < now ? complete : now;
	return complete > LATENESS ? complete - LATENESS : 0;
}

int fay_trace_cluster_gather(struct trace *trace, struct fay_error *error)
{
	struct fay_aggregator *fresh;
	if (!trace->root || !fay_root_replaces(trace->root))
		return FAY_OK;
	if (fay_aggregator_create(trace->schema, &fresh, error))
		return error->code;
	trace->aggregator = fresh;
	return fay_root_gather(trace->root, fresh, error);
}

void fay_trace_cluster_gathered(struct trace *trace)
{
	if (!trace->root || trace->aggregator == trace->cluster_rows)
		return;
	fay_aggregator_destroy(trace->aggregator);
	trace->aggregator = trace->cluster_rows;
}

int fay_trace_windows_tick(struct trace *trace, uint64_t now, struct fay_error *error)
{
	struct fay_trace_windows *w = trace->windows;
	if (!w)
		return FAY_OK;
	uint64_t until = over_until(trace, now);
	bool changed = trace->root && w->shown_count &&
		       w->changed_from < w->shown[w->shown_count - 1].end &&
		       now >= w->next_revision;
	if (until < w->next && !changed)
		return FAY_OK;
	struct fay_result all = { 0 };
	int result = fay_trace_cluster_gather(trace, error);
	if (!result)
		result = close_until(trace, until, now, &all, error);
	fay_trace_cluster_gathered(trace);
	fay_result_deinit(&all);
	return result;
}

/*
 * Of a saved trace all windows are over: from the first event's to the last one's. Where the query
 * has no rows for windows without events they are passed over, since there may be years between two
 * events.
 */
static int show_saved(struct trace *trace, struct fay_result *all, struct fay_error *error)
{
	uint64_t step = trace->plan->window_step, width = trace->plan->window_width, shown = 0,
		 start;
	bool empty = fay_plan_shows_empty_windows(trace->plan);
	int result = fay_trace_snapshot(trace, trace->views[0].state, all, error);
	uint64_t end = result || !all->row_count ? 0 : start_of_row(trace, all, 0) + step;
	while (!result && end >= step &&
	       (start = next_step(trace, all, end < width ? 0 : end - width)) != UINT64_MAX) {
		if (start >= end && !empty)
			end = start + step;
		if (trace->interrupted) {
			snprintf(trace->reason, sizeof(trace->reason),
				 "interrupted: %" PRIu64
				 " windows are shown, those after them are not",
				 shown);
			trace->end_reason = trace->reason;
			break;
		}
		result = show_window(trace, all, end, error);
		shown++;
		end += step;
	}
	return result;
}

/* A machine's clock, or a processor's counter, may be ahead of ours: windows that have not begun
 * here, but have rows. Numbers end behind the year 2554. */
static int close_ahead(struct trace *trace, const struct fay_result *all, struct fay_error *error)
{
	struct fay_trace_windows *w = trace->windows;
	uint64_t start, step = trace->plan->window_step, width = trace->plan->window_width;
	int result = FAY_OK;
	if (next_step(trace, all, w->next) == UINT64_MAX)
		return FAY_OK;
	while (!result && !trace->interrupted && w->next >= step &&
	       (start = next_step(trace, all, w->next - width)) <= UINT64_MAX - step) {
		if (start >= w->next)
			w->next = start + step;
		result = close_window(trace, all, error);
	}
	return result;
}

int fay_trace_windows_end(struct trace *trace, struct fay_result *last, struct fay_error *error)
{
	if (!trace->windows)
		return FAY_OK;
	uint64_t now = fay_trace_now(trace), step = trace->plan->window_step;
	uint64_t until = now - now % step + step;
	const struct fay_trace_windows before = *trace->windows;
	int result;
	trace->windows->changed_from = 0;
	if (!fay_trace_is_file(trace))
		trace->interrupted = 0; /* that ended the trace; the next one ends this */
	if (fay_trace_is_file(trace))
		result = show_saved(trace, last, error);
	else
		result = close_until(trace, until, UINT64_MAX - trace->windows->horizon, last,
				     error);
	if (!result && before.counts && !fay_trace_is_file(trace))
		trace->events_late = count_events(trace, last, 0, before.counted_below) +
				     before.forgotten - before.counted;
	if (!result && !fay_trace_is_file(trace))
		result = close_ahead(trace, last, error);
	if (trace->interrupted && !fay_trace_is_file(trace))
		trace->end_reason = "interrupted, and again: the last windows are not shown";
	for (size_t i = 0; i < trace->windows->shown_count; i++)
		fay_result_deinit(&trace->windows->shown[i].rows);
	free(trace->windows->shown);
	free(trace->windows);
	trace->windows = NULL;
	return result;
}
