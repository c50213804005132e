/* SPDX-License-Identifier: MIT */
/* Queries over saved traces, file("NAME"): docs/saved-trace.md */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

struct taker {
	struct trace *trace;
	struct fay_error error; /* the first; code 0: none */
	/* of the event that is fed */
	unsigned side;
	const uint8_t *row;
};

static void take_row(void *context, uint32_t state, const uint8_t *row)
{
	struct taker *taker = context;
	if (!taker->error.code)
		fay_aggregator_take_row(taker->trace->aggregator, state, row, &taker->error);
}

/* What probes read are strings of the row. */
static bool read_text(void *context, void *to, uint64_t size, uint64_t address)
{
	const struct taker *taker = context;
	return fay_plan_saved_read(taker->trace->plan, taker->side, taker->row, to, size, address);
}

/* A saved event that is fed next. */
struct pending {
	struct fay_event event;
	const uint8_t *row; /* until the next one is read */
	uint32_t probe;
	bool there;
};

static void read_event(const struct fay_plan *plan, unsigned side, struct pending *next,
		       struct fay_error *error)
{
	next->there = false;
	while (!next->there && (next->row = fay_saved_next(fay_plan_saved(plan, side), error)))
		next->there =
			fay_plan_saved_event(plan, side, next->row, &next->event, &next->probe);
}

/* Of several files, the one whose event came first, -1 if all end here; what is far before it does
 * not come any more. */
static int choose(struct trace *trace, const struct pending next[FAY_JOIN_SOURCES])
{
	int first = -1;
	for (int side = 0; side < (int)trace->plan->source_count; side++)
		if (next[side].there &&
		    (first < 0 || next[side].event.time < next[first].event.time))
			first = side;
	if (first >= 0) {
		fay_trace_join_advance(trace, next[first].event.time);
		fay_trace_counted_advance(trace, next[first].event.time);
	}
	return first;
}

/* The files are not read further then; what was read is in the result. The next signal ends the
 * showing of windows. */
static void say_interrupted(struct trace *trace)
{
	uint64_t rows = 0, all = 0;
	for (unsigned side = 0; side < trace->plan->source_count; side++) {
		rows += fay_saved_rows_read(fay_plan_saved(trace->plan, side));
		all += fay_saved_header(fay_plan_saved(trace->plan, side))->row_count;
	}
	snprintf(trace->reason, sizeof(trace->reason),
		 "interrupted after %" PRIu64 " of %" PRIu64
		 " saved events; the result covers only these",
		 rows, all);
	trace->end_reason = trace->reason;
	trace->interrupted = 0;
}

static int replay_all(struct trace *trace, struct fay_replay *replay, struct taker *taker,
		      struct fay_error *error)
{
	const struct fay_plan *plan = trace->plan;
	struct pending next[FAY_JOIN_SOURCES] = { 0 };
	uint64_t rows = 0;
	for (unsigned side = 0; side < plan->source_count && !error->code; side++) {
		fay_saved_stop_on(fay_plan_saved(plan, side), &trace->interrupted);
		read_event(plan, side, &next[side], error);
	}
	int side;
	while (!trace->end_reason && !error->code && (side = choose(trace, next)) >= 0) {
		taker->side = (unsigned)side;
		taker->row = next[side].row;
		fay_replay_event(replay, next[side].probe, &next[side].event);
		read_event(plan, (unsigned)side, &next[side], error);
		if (++rows % 1024)
			continue;
		if (taker->error.code || fay_trace_rows_error(trace, &taker->error)) {
			*error = taker->error;
			return error->code;
		}
		if (fay_trace_has_all_rows(trace))
			trace->end_reason = "the query has all its rows";
	}
	if (!trace->end_reason && trace->interrupted)
		say_interrupted(trace);
	if (!trace->end_reason)
		trace->end_reason =
			plan->joins ? "end of the saved traces" : "end of the saved trace";
	if (error->code)
		return error->code;
	fay_replay_end(replay);
	if (taker->error.code)
		*error = taker->error;
	return taker->error.code;
}

static void report_events(const struct trace *trace, const struct fay_saved *saved)
{
	const struct fay_saved_header *header = fay_saved_header(saved);
	if (fay_saved_cut_off(saved))
		fprintf(trace->messages,
			"fay: %" PRIu64 " saved events; the file is truncated: its writer was "
			"killed or ran out of space; functions have no names\n",
			header->row_count);
	else
		fprintf(trace->messages,
			"fay: %" PRIu64 " saved events, %" PRIu64 " were lost while saving\n",
			header->row_count, header->events_lost);
}

int fay_trace_file(struct trace *trace, struct fay_error *error)
{
	struct taker taker = { .trace = trace };
	struct fay_replay *replay;
	uint64_t since = fay_monotonic();
	error->code = FAY_OK;
	int result =
		fay_replay_create(&trace->verdict, take_row, read_text, &taker, &replay, error);
	if (result)
		return result;
	for (unsigned side = 0; side < trace->plan->source_count; side++)
		report_events(trace, fay_plan_saved(trace->plan, side));
	trace->output.schema(trace->output.context, trace);
	result = fay_trace_windows_start(trace, error);
	if (!result)
		result = replay_all(trace, replay, &taker, error);
	fay_replay_destroy(replay);
	fay_trace_stage(trace, "replay", since);
	return fay_trace_finish(trace, result, error);
}

/* "libc!qsort+0x1c": of the name, as `form` wants it. */
static void write_saved(const char *name, unsigned form, char *text, size_t size)
{
	char buffer[256], bare[FAY_SAVED_ROW + 1];
	const char *bang = strchr(name, '!'), *plus = bang ? strrchr(bang, '+') : NULL;
	int length = bang ? (int)((plus ? plus : name + strlen(name)) - bang - 1) : 0;
	snprintf(bare, sizeof(bare), "%.*s", length, bang ? bang + 1 : "");
	const char *shown = form & (FAY_ADDRESS_READABLE | FAY_ADDRESS_BARE)
				    ? fay_readable_name(bare, buffer, sizeof(buffer))
				    : bare;
	if (!bang && form & FAY_ADDRESS_BARE)
		snprintf(text, size, "[%.*s]", (int)strcspn(name, "+"),
			 name[0] == '0' ? "unknown" : name);
	else if (!bang)
		snprintf(text, size, "%s", name);
	else if (form & FAY_ADDRESS_BARE)
		snprintf(text, size, "%s", shown);
	else
		snprintf(text, size, "%.*s!%s%s", (int)(bang - name), name, shown,
			 plus ? plus : "");
}

void fay_trace_saved_address(const struct trace *trace, uint64_t address, unsigned form, char *text,
			     size_t size)
{
	uint64_t key = fay_saved_address(address, form & FAY_ADDRESS_EXACT);
	const char *name = NULL;
	char number[32];
	for (unsigned side = 0; !name && side < trace->plan->source_count; side++)
		name = fay_saved_name(fay_plan_saved(trace->plan, side), key);
	snprintf(number, sizeof(number), "0x%" PRIx64, address);
	write_saved(name ? name : number, form, text, size);
}
