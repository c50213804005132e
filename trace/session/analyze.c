/* SPDX-License-Identifier: MIT */
/* --analyze: what became of the query's rows on their way, printed with each picture of --every, on
 * SIGUSR1, and at the end. */
#include <stdlib.h>
#include <string.h>

#include "session.h"

void fay_trace_analyze_start(struct trace *trace)
{
	if (trace->analyze)
		trace->plan->measured = &trace->measured;
}

int64_t fay_trace_poll(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	int64_t result = fay_aggregator_poll(trace->aggregator, error);
	trace->measured.poll_ns += fay_monotonic() - since;
	return result;
}

/* All points of a process; short of memory they stay unmeasured. */
static void add_costs(struct trace *trace, struct fay_session *session)
{
	size_t count = fay_session_cost_count(session);
	struct fay_point_cost *costs = calloc(count + 1, sizeof(*costs));
	if (costs)
		fay_session_costs(session, costs);
	for (size_t i = 0; costs && i < count; i++) {
		trace->measured.events += costs[i].events;
		trace->measured.probe_ns += costs[i].nanoseconds;
	}
	free(costs);
}

/* All that is known so far. */
static void fill(struct trace *trace, const struct fay_result *last)
{
	struct fay_measured *m = &trace->measured;
	m->events = m->probe_ns = 0;
	for (size_t i = 0; i < trace->session_count; i++)
		add_costs(trace, trace->sessions[i]);
	for (unsigned side = 0; side < trace->plan->source_count; side++)
		m->handed_on[side] = fay_aggregator_traffic(trace->aggregator, side);
	fay_trace_join_counts(trace, m);
	m->lost = last->events_lost_reentrant + last->events_lost_full + last->events_lost_no_slot +
		  last->calls_lost;
	m->live_rows = last->live_rows;
	m->merged_rows = last->row_count;
	if (trace->plan->streams && !trace->plan->collects)
		m->result_rows = trace->rows_shown;
}

void fay_trace_analyze_print(struct trace *trace, const struct fay_result *last, bool final)
{
	if (!trace->analyze)
		return;
	fill(trace, last);
	if (trace->json) {
		fay_plan_print_measured_json(trace->json, trace->plan, &trace->measured, final);
		return;
	}
	fay_trace_check_output(trace, &(struct fay_error){ 0 });
	fprintf(trace->messages, "fay: measured%s, from the result down to the probes\n",
		final ? "" : " so far");
	fay_plan_print_measured(trace->messages, trace->plan, &trace->measured);
}

int fay_trace_analyze_tick(struct trace *trace, struct fay_error *error)
{
	struct fay_result now, finished;
	bool asked = trace->asked_for_figures;
	trace->asked_for_figures = 0;
	if (!trace->analyze || (!asked && !trace->analyze_due))
		return FAY_OK;
	trace->analyze_due = false;
	if (fay_trace_snapshot(trace, trace->views[0].state, &now, error))
		return error->code;
	int result = FAY_OK;
	if (trace->plan->finishes && !trace->plan->window_step && !trace->plan->window_events) {
		result = fay_plan_finish(trace->plan,
					 trace->plan->collects ? &trace->collected : &now,
					 fay_trace_order_name, trace, &finished, error);
		trace->measured.result_rows = result ? 0 : finished.row_count;
		if (!result)
			fay_result_deinit(&finished);
	} else {
		trace->measured.result_rows = now.row_count;
	}
	if (!result)
		fay_trace_analyze_print(trace, &now, false);
	fay_result_deinit(&now);
	return result;
}
