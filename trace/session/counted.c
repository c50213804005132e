/* SPDX-License-Identifier: MIT */
/* Queries with windows of so many events: rows of events are put in order and counted, and each
 * window is shown once it has all of its events. */
#include <inttypes.h>
#include <stdlib.h>

#include "aggregator/streams/order.h"

#include "session.h"

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

static int show(struct trace *trace, const struct fay_result *rows, struct fay_error *error)
{
	struct fay_result finished;
	if (fay_plan_finish(trace->plan, rows, fay_trace_function_name, trace, &finished, error))
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
		show(c->trace, &rows, &c->error);
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
