/* SPDX-License-Identifier: MIT */
/*
 * --save: rows of events into a file; --rotate: into one after the other, of which --keep of the
 * last ones stay. A flight recorder: with SIGUSR2 what is there is set apart, under names that are
 * not removed. docs/saved-trace.md
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

struct fay_trace_save {
	struct fay_save *file; /* NULL: it could not be made */
	struct fay_save_layout layout;
	uint64_t began;        /* monotonic ns */
	uint64_t lost_before;  /* events, when the file began */
	uint64_t oldest, next; /* FILE.oldest to FILE.(next - 1) are there, finished */
	uint64_t snapshots;
};

/* Of a query with two sources, rows of both. */
static void save_row(void *context, uint32_t state, const uint8_t *row)
{
	struct trace *trace = context;
	trace->rows_shown++;
	fay_trace_save_row(trace, state, row);
}

void fay_trace_save_row(struct trace *trace, uint32_t state, const uint8_t *row)
{
	if (trace->save->file)
		fay_save_row(trace->save->file, state, row);
}

static void name_address(void *context, uint64_t address, bool exact, char *text, size_t size)
{
	bool kernel = address >> 63;
	fay_trace_address_name(context, address,
			       (exact ? FAY_ADDRESS_EXACT : 0) | (kernel ? FAY_ADDRESS_KERNEL : 0),
			       text, size);
}

/* `lost`: all since the trace began. The program can write to the counters: they may have become
 * less. */
static int finish_file(struct trace *trace, struct fay_save *file, uint64_t lost,
		       struct fay_error *error)
{
	uint64_t before = trace->save->lost_before;
	const struct fay_save_names names = { .function = fay_trace_function_name,
					      .address = name_address,
					      .context = trace,
					      .texts = trace->texts };
	return fay_save_finish(file, lost > before ? lost - before : 0, &names, error);
}

static int create(struct trace *trace, struct fay_error *error)
{
	struct fay_trace_save *save = trace->save;
	save->began = fay_monotonic();
	return fay_save_create(trace->save_path, &save->layout, &save->file, error);
}

int fay_trace_save_start(struct trace *trace, struct fay_error *error)
{
	if (!trace->save_path)
		return FAY_OK;
	if (fay_trace_is_file(trace))
		return fay_error_set(error, FAY_E_USAGE,
				     "--save keeps live events, and these are saved already");
	if (!trace->plan->streams || trace->plan->collects)
		return fay_error_set(error, FAY_E_USAGE,
				     "--save keeps rows of events, and this query has none: leave "
				     "out the aggregates, groups and order, and query the saved "
				     "trace for them by file(\"%s\")",
				     trace->save_path);
	trace->save = calloc(1, sizeof(*trace->save));
	if (!trace->save)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	trace->save->oldest = trace->save->next = 1;
	if (fay_plan_save_layout(trace->plan, trace->schema, &trace->save->layout, error))
		return error->code;
	if (trace->plan->joins)
		fay_aggregator_on_row(trace->aggregator, save_row, trace);
	return create(trace, error);
}

/* --- one file after the other --- */

/* FILE.NUMBER, FILE.snapshot-SNAPSHOT.NUMBER; false: too long. */
static bool name_of(const struct trace *trace, uint64_t snapshot, uint64_t number,
		    char path[PATH_MAX])
{
	int length = snapshot ? snprintf(path, PATH_MAX, "%s.snapshot-%" PRIu64 ".%" PRIu64,
					 trace->save_path, snapshot, number)
			      : snprintf(path, PATH_MAX, "%s.%" PRIu64, trace->save_path, number);
	return length > 0 && length < PATH_MAX;
}

static int move(const char *from, const char *to, struct fay_error *error)
{
	return rename(from, to)
		       ? fay_error_set(error, FAY_E_INTERNAL, "cannot rename '%s' to '%s': %s",
				       from, to, strerror(errno))
		       : FAY_OK;
}

/* Files beyond --keep, the current one included. */
static void remove_oldest(struct trace *trace)
{
	char path[PATH_MAX];
	struct fay_trace_save *save = trace->save;
	for (; trace->save_keep && save->next - save->oldest + 1 > trace->save_keep; save->oldest++)
		if (name_of(trace, 0, save->oldest, path))
			unlink(path);
}

/* Finishes the file, under the next number. */
static int finish(struct trace *trace, uint64_t lost, struct fay_error *error)
{
	char path[PATH_MAX];
	struct fay_trace_save *save = trace->save;
	struct fay_save *file = save->file;
	save->file = NULL;
	if (finish_file(trace, file, lost, error))
		return error->code;
	save->lost_before = lost;
	if (!name_of(trace, 0, save->next, path))
		return fay_error_set(error, FAY_E_LIMIT, "the name '%s' is too long",
				     trace->save_path);
	if (move(trace->save_path, path, error))
		return error->code;
	save->next++;
	remove_oldest(trace);
	return FAY_OK;
}

/* What is there gets names that stay. */
static int set_apart(struct trace *trace, struct fay_error *error)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct fay_trace_save *save = trace->save;
	uint64_t first = save->oldest, snapshot = ++save->snapshots;
	for (; save->oldest < save->next; save->oldest++)
		if (!name_of(trace, 0, save->oldest, from) ||
		    !name_of(trace, snapshot, save->oldest, to) || move(from, to, error))
			return error->code;
	fprintf(trace->messages,
		"fay: snapshot %" PRIu64 ": %s.snapshot-%" PRIu64 ".%" PRIu64 " to .%" PRIu64 "\n",
		snapshot, trace->save_path, snapshot, first, save->next - 1);
	return FAY_OK;
}

static int lost_so_far(struct trace *trace, uint64_t *lost, struct fay_error *error)
{
	struct fay_result counts;
	if (fay_trace_snapshot(trace, 0, &counts, error))
		return error->code;
	*lost = counts.events_lost_reentrant + counts.events_lost_full +
		counts.events_lost_no_slot + counts.calls_lost;
	fay_result_deinit(&counts);
	return FAY_OK;
}

int fay_trace_save_tick(struct trace *trace, struct fay_error *error)
{
	struct fay_trace_save *save = trace->save;
	bool snapshot = trace->asked_for_snapshot;
	uint64_t lost = 0;
	if (!save || !save->file)
		return FAY_OK;
	/* A trace that goes on without what it is for would be found out at its end, hours later.
	 * */
	if (fay_save_check(save->file, error)) {
		trace->end_reason = "no more events can be saved";
		return error->code;
	}
	trace->asked_for_snapshot = 0;
	bool full = trace->save_bytes && fay_save_size(save->file) >= trace->save_bytes;
	bool old = trace->save_age && fay_monotonic() - save->began >= trace->save_age;
	if (!snapshot && !full && !old)
		return FAY_OK;
	if (lost_so_far(trace, &lost, error) || finish(trace, lost, error))
		return error->code;
	if (snapshot && set_apart(trace, error))
		return error->code;
	return create(trace, error);
}

int fay_trace_save_end(struct trace *trace, uint64_t lost, struct fay_error *error)
{
	struct fay_trace_save *save = trace->save;
	int result = FAY_OK;
	if (save && save->file)
		result = finish_file(trace, save->file, lost, error);
	trace->save = NULL;
	free(save);
	return result;
}
