/* SPDX-License-Identifier: MIT */
/* Rows of events as they come: shown at once, skipped, or kept until the end where the query orders
 * them. And the texts that strings in rows stand for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "session.h"

#define COLLECTED_BYTES (256u << 20)

/* Room for one row more. What no later row can bring into the result is dropped first. */
static bool make_room(struct trace *trace, uint32_t row_size)
{
	struct fay_result *rows = &trace->collected;
	if (rows->row_count < trace->collected_room)
		return true;
	if (rows->row_count && fay_plan_prune(trace->plan, rows, fay_trace_function_name, trace)) {
		trace->collected_room = rows->row_count; /* the smaller memory is exactly full */
		if (!rows->row_count)
			return make_room(trace, row_size);
	}
	size_t room = rows->row_count < 512 ? 1024 : 2 * rows->row_count;
	if (room > COLLECTED_BYTES / row_size)
		room = COLLECTED_BYTES / row_size;
	if (room <= rows->row_count)
		return false;
	uint8_t *larger = realloc(rows->rows, room * row_size);
	if (!larger)
		return false;
	rows->rows = larger;
	trace->collected_room = room;
	return true;
}

static void collect(struct trace *trace, const struct fay_view *view, const uint8_t *row)
{
	struct fay_result *rows = &trace->collected;
	rows->state = view->state;
	rows->row_size = view->row_size;
	if (trace->collect_failed || !make_room(trace, rows->row_size)) {
		trace->collect_failed = true;
		return;
	}
	memcpy(rows->rows + rows->row_count++ * rows->row_size, row, rows->row_size);
}

static void show(struct trace *trace, const struct fay_view *view, const uint8_t *row)
{
	const struct fay_plan *plan = trace->plan;
	if (plan && (trace->rows_seen++ < plan->first_row || trace->rows_shown >= plan->row_limit))
		return;
	trace->rows_shown++;
	if (trace->save)
		fay_trace_save_row(trace, 0, row);
	else
		fay_trace_write_row(trace, view, row, false);
}

void fay_trace_row(void *context, uint32_t state, const uint8_t *row)
{
	struct trace *trace = context;
	for (size_t i = 0; i < trace->view_count; i++) {
		if (trace->views[i].state != state)
			continue;
		if (trace->views[i].streams)
			show(trace, &trace->views[i], row);
		else
			collect(trace, &trace->views[i], row);
	}
}

bool fay_trace_has_all_rows(const struct trace *trace)
{
	return trace->plan && trace->plan->streams && !trace->plan->collects &&
	       trace->rows_shown >= trace->plan->row_limit;
}

int fay_trace_rows_error(const struct trace *trace, struct fay_error *error)
{
	if (!trace->collect_failed)
		return fay_trace_join_error(trace, error) ?: fay_trace_counted_error(trace, error);
	return fay_error_set(error, FAY_E_LIMIT,
			     "the rows to be ordered do not fit into %u MiB: reduce them by a "
			     "`take` after the order, a condition, or groups",
			     COLLECTED_BYTES >> 20);
}

/* --- strings of more than 15 bytes: rows have hashes of them, and a table has the texts --- */

int fay_trace_texts_plan(const struct trace *trace, struct fay_query_options *options,
			 struct fay_error *error)
{
	/* whoever attaches to a detached query plans it with another key than its image has */
	if (trace->detach || trace->image.data)
		return FAY_OK;
	options->long_strings = true;
	options->long_kernel_strings = !trace->remote.bus.url;
	if (getrandom(&options->text_key, sizeof(options->text_key), 0) ==
	    (ssize_t)sizeof(options->text_key))
		return FAY_OK;
	return fay_error_set(error, FAY_E_INTERNAL, "the kernel gives no random numbers");
}

int fay_trace_texts_start(struct trace *trace, struct fay_error *error)
{
	if (!trace->plan || !trace->plan->texts)
		return FAY_OK;
	if (fay_texts_create(trace->plan->text_key, FAY_TEXTS_LIMIT, &trace->texts, error))
		return error->code;
	fay_aggregator_set_texts(trace->aggregator, trace->plan->text_state, trace->texts);
	fay_plan_set_texts(trace->plan, trace->texts);
	return FAY_OK;
}

int fay_trace_texts_account(struct trace *trace, struct fay_result *result, struct fay_error *error)
{
	uint64_t lost;
	if (fay_aggregator_texts_lost(trace->aggregator, &lost, error))
		return error->code;
	result->events_lost_full -=
		lost < result->events_lost_full ? lost : result->events_lost_full;
	trace->texts_unsent = lost;
	return FAY_OK;
}

void fay_trace_texts_print_end(const struct trace *trace)
{
	uint64_t full = trace->texts ? fay_texts_lost(trace->texts) : 0;
	if (trace->json && trace->texts)
		fprintf(trace->json, ",\"texts_unsent\":%" PRIu64 ",\"texts_lost\":%" PRIu64,
			trace->texts_unsent, full);
	if (trace->texts_unsent)
		fprintf(trace->messages,
			"fay: %" PRIu64 " time%s a string had no room in its thread's ring; it was "
			"tried again at its next event\n",
			trace->texts_unsent, trace->texts_unsent == 1 ? "" : "s");
	if (full)
		fprintf(trace->messages,
			"fay: strings do not fit into %u MiB: %" PRIu64 " time%s one was not kept, "
			"and is shown as <text lost>\n",
			FAY_TEXTS_LIMIT >> 20, full, full == 1 ? "" : "s");
}
