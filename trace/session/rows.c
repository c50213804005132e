/* SPDX-License-Identifier: MIT */
/* Rows of events as they come: shown at once, skipped, or kept until the end where the query orders
 * them. And the texts that strings in rows stand for.
 * Of windows of so many events: rows are put in order and counted, and each window is shown once it
 * has all of its events. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "aggregator/streams/order.h"

#include "session.h"

#define COLLECTED_BYTES (256u << 20)

const char *fay_trace_order_name(void *context, uint64_t hash)
{
	struct trace *trace = context;
	const char *known = fay_names_find(&trace->readable, hash), *name;
	char buffer[256];
	if (known || !(name = fay_trace_function_name(trace, hash)))
		return known;
	const char *readable = fay_readable_name(name, buffer, sizeof(buffer));
	fay_names_add(&trace->readable, hash,
		      (struct fay_text){ readable, (uint16_t)strnlen(readable, UINT16_MAX) });
	return fay_names_find(&trace->readable, hash) ?: name;
}

/* Room for one row more. What no later row can bring into the result is dropped first. */
static bool make_room(struct trace *trace, uint32_t row_size)
{
	struct fay_result *rows = &trace->collected;
	if (rows->row_count < trace->collected_room)
		return true;
	if (rows->row_count && fay_plan_prune(trace->plan, rows, fay_trace_order_name, trace)) {
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

/* --- windows of so many events --- */

/* ns: saved rows lie in the order in which they were drained, thread by thread */
#define LATENESS_SAVED UINT64_C(2000000000)

struct fay_trace_counted {
	struct trace *trace;
	struct fay_order *order;
	struct fay_schema schema; /* of the windows' rows */
	struct fay_aggregator *windows;
	uint64_t number, events; /* of the window that is filled: its number, what it has */
	struct fay_error error;  /* the first; code 0: none */
	uint8_t row[4096];
};

static int show_counted(struct trace *trace, const struct fay_result *rows, struct fay_error *error)
{
	struct fay_result finished;
	if (fay_plan_finish(trace->plan, rows, fay_trace_order_name, trace, &finished, error))
		return error->code;
	for (size_t r = 0; r < finished.row_count; r++)
		fay_trace_write_row(trace, &trace->views[0], finished.rows + r * finished.row_size,
				    false);
	fay_result_deinit(&finished);
	return FAY_OK;
}

/* Shows the window, and begins the next one. */
static void close_window(struct fay_trace_counted *c)
{
	struct fay_result all, rows;
	uint64_t end = ++c->number;
	c->events = 0;
	if (fay_aggregator_snapshot(c->windows, 0, &all, &c->error))
		return;
	if (!fay_plan_window(c->trace->plan, &c->schema, &all, end, &rows, &c->error)) {
		show_counted(c->trace, &rows, &c->error);
		fay_result_deinit(&rows);
	}
	fay_result_deinit(&all);
	fay_aggregator_forget(c->windows, 0, end);
}

static void take_event(void *context, const uint8_t *event)
{
	struct fay_trace_counted *c = context;
	if (c->error.code)
		return;
	if (fay_plan_event(c->trace->plan, c->number, event, c->row) &&
	    fay_aggregator_take_row(c->windows, 0, c->row, &c->error))
		return;
	if (++c->events == c->trace->plan->window_events)
		close_window(c);
}

static void take_row(void *context, uint32_t state, const uint8_t *row)
{
	struct fay_trace_counted *c = context;
	if (state == 0)
		fay_order_add(c->order, row);
}

int fay_trace_counted_start(struct trace *trace, struct fay_error *error)
{
	const struct fay_plan *plan = trace->plan;
	if (!plan || !plan->window_events)
		return FAY_OK;
	struct fay_trace_counted *c = trace->counted = calloc(1, sizeof(*c));
	if (!c)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	c->trace = trace;
	fay_plan_schema(plan, &c->schema);
	if (fay_order_create(plan->event_size, plan->event_time_offset, 0, take_event, c, &c->order,
			     error) ||
	    fay_aggregator_create(&c->schema, &c->windows, error))
		return error->code;
	fay_aggregator_on_row(trace->aggregator, take_row, c);
	return FAY_OK;
}

void fay_trace_counted_deinit(struct trace *trace)
{
	if (!trace->counted)
		return;
	fay_order_destroy(trace->counted->order);
	fay_aggregator_destroy(trace->counted->windows);
	free(trace->counted);
	trace->counted = NULL;
}

void fay_trace_counted_advance(struct trace *trace, uint64_t time)
{
	uint64_t lateness = fay_trace_is_file(trace) ? LATENESS_SAVED : FAY_ORDER_LATENESS;
	if (trace->counted && time > lateness)
		fay_order_advance(trace->counted->order, time - lateness);
}

int fay_trace_counted_error(const struct trace *trace, struct fay_error *error)
{
	if (!trace->counted || !trace->counted->error.code)
		return FAY_OK;
	*error = trace->counted->error;
	return error->code;
}

int fay_trace_counted_end(struct trace *trace, struct fay_result *last, struct fay_error *error)
{
	struct fay_trace_counted *c = trace->counted;
	fay_order_advance(c->order, UINT64_MAX);
	if (c->events && !c->error.code)
		close_window(c);
	/* what was lost, and where */
	if (fay_aggregator_snapshot(trace->aggregator, 0, last, error))
		return error->code;
	return fay_trace_counted_error(trace, error);
}

void fay_trace_counted_print_end(const struct trace *trace)
{
	struct fay_order_counts counts;
	if (!trace->counted)
		return;
	fay_order_counts(trace->counted->order, &counts);
	if (trace->json)
		fprintf(trace->json,
			",\"counted\":{\"events\":%" PRIu64 ",\"windows\":%" PRIu64
			",\"late\":%" PRIu64 "}",
			counts.rows, trace->counted->number, counts.late);
	fprintf(trace->messages, "fay: %" PRIu64 " events in %" PRIu64 " windows", counts.rows,
		trace->counted->number);
	if (counts.late)
		fprintf(trace->messages,
			"; %" PRIu64 " came late, and are in a later window than their time says",
			counts.late);
	fprintf(trace->messages, "\n");
}
