/* SPDX-License-Identifier: MIT */
/* Queries with a join: from the rows of both sources to pairs, and on to what is shown. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fay/join.h"

#include "session.h"

/*
 * How long after an event's time its row may come, ns: a thread may be taken off its processor in
 * between. Saved rows lie in the order in which they were drained, thread by thread.
 */
#define LATENESS UINT64_C(2000000000)
#define LATENESS_SAVED UINT64_C(10000000000)

#define ROWS_A_LOOK 16u
#define SAID_AFTER UINT64_C(1000000000) /* ns */

struct fay_trace_join {
	struct trace *trace;
	struct fay_pairs *pairs;
	struct fay_schema schema; /* of what the pairs fill */
	struct fay_aggregator *rows;
	struct fay_error error; /* the first; code 0: none */
	/* of rows that come when the trace is over */
	uint64_t came, over_since, unjoined;
	sig_atomic_t interrupts; /* that ended it */
	bool said, given_up;
	/* of those the ones that wait until the probes are gone, each behind its source's number */
	uint8_t *waiting;
	size_t waiting_size, waiting_room;
	bool all_here;
};

static void take_pair(void *context, const uint8_t *row)
{
	struct fay_trace_join *j = context;
	if (!j->error.code)
		fay_aggregator_take_row(j->rows, 0, row, &j->error);
}

/* An event may make thousands of pairs. Once the trace is over who waits for the rest is told, and
 * a signal more ends it. */
static void look_at_end(struct fay_trace_join *j)
{
	struct trace *trace = j->trace;
	uint64_t now = fay_monotonic();
	if (!j->over_since) {
		if (!trace->interrupted && !trace->end_reason &&
		    (!trace->run_until || now < trace->run_until))
			return;
		j->over_since = now;
		j->interrupts = trace->interrupted != 0;
	}
	j->given_up = trace->interrupts > j->interrupts;
	if (j->said || j->given_up || now - j->over_since < SAID_AFTER)
		return;
	j->said = true;
	fprintf(trace->messages, "fay: pairs of the events that came until the end are being made; "
				 "Ctrl-C shows those "
				 "that are there\n");
}

static size_t row_size(const struct fay_trace_join *j, uint64_t source)
{
	const struct fay_join_options *joins = j->trace->plan->join;
	return source ? joins[source - 1].sides[1].row_size : joins[0].sides[0].row_size;
}

/* While pairs are made the program goes on and makes more rows: those that come when the trace is
 * over wait, so that it can end. */
static bool put_off(struct fay_trace_join *j, uint64_t source, const uint8_t *row)
{
	size_t size = row_size(j, source), needed = j->waiting_size + sizeof(source) + size;
	if (!j->over_since || j->all_here || needed > FAY_JOIN_BYTES)
		return false;
	if (needed > j->waiting_room) {
		size_t room = 2 * needed;
		uint8_t *grown = realloc(j->waiting, room);
		if (!grown)
			return false;
		j->waiting = grown;
		j->waiting_room = room;
	}
	memcpy(j->waiting + j->waiting_size, &source, sizeof(source));
	memcpy(j->waiting + j->waiting_size + sizeof(source), row, size);
	j->waiting_size = needed;
	return true;
}

/* State n has the rows of source n. */
static void take_row(void *context, uint32_t state, const uint8_t *row)
{
	struct fay_trace_join *j = context;
	if (!j->given_up && j->came++ % ROWS_A_LOOK == 0)
		look_at_end(j);
	if (j->given_up)
		j->unjoined++;
	else if (!put_off(j, state, row))
		fay_pairs_add(j->pairs, state, row);
}

int fay_trace_join_start(struct trace *trace, struct fay_error *error)
{
	static const uint8_t nothing[4096];
	if (!trace->plan || !trace->plan->joins || trace->save_path)
		return FAY_OK; /* saved events are joined when they are asked for */
	struct fay_trace_join *j = trace->join = calloc(1, sizeof(*j));
	if (!j)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	j->trace = trace;
	fay_plan_schema(trace->plan, &j->schema);
	if (fay_pairs_create(trace->plan, take_pair, j, &j->pairs, error) ||
	    fay_aggregator_create(&j->schema, &j->rows, error))
		return error->code;
	/* one value is there without any pair, too */
	if (j->schema.states[0].kind == FAY_STATE_CELL)
		fay_aggregator_take_row(j->rows, 0, nothing, &j->error);
	fay_aggregator_on_row(j->rows, fay_trace_row, trace);
	fay_aggregator_on_row(trace->aggregator, take_row, j);
	return FAY_OK;
}

void fay_trace_join_deinit(struct trace *trace)
{
	if (!trace->join)
		return;
	fay_pairs_destroy(trace->join->pairs);
	fay_aggregator_destroy(trace->join->rows);
	free(trace->join->waiting);
	free(trace->join);
	trace->join = NULL;
}

void fay_trace_join_advance(struct trace *trace, uint64_t time)
{
	uint64_t lateness = fay_trace_is_file(trace) ? LATENESS_SAVED : LATENESS;
	if (trace->join && time > lateness)
		fay_pairs_advance(trace->join->pairs, time - lateness);
}

void fay_trace_join_end(struct trace *trace)
{
	struct fay_trace_join *j = trace->join;
	uint64_t source;
	if (!j)
		return;
	j->all_here = true;
	for (size_t at = 0; at < j->waiting_size; at += sizeof(source) + row_size(j, source)) {
		memcpy(&source, j->waiting + at, sizeof(source));
		take_row(j, (uint32_t)source, j->waiting + at + sizeof(source));
	}
	j->waiting_size = 0;
	fay_pairs_advance(j->pairs, UINT64_MAX);
}

int fay_trace_join_error(const struct trace *trace, struct fay_error *error)
{
	if (!trace->join || !trace->join->error.code)
		return FAY_OK;
	*error = trace->join->error;
	return error->code;
}

void fay_trace_join_counts(const struct trace *trace, struct fay_measured *measured)
{
	if (trace->join)
		fay_pairs_counts(trace->join->pairs, &measured->joins);
}

static void print_json_counts(FILE *out, const char *name, const struct fay_join_counts *c)
{
	fprintf(out,
		",\"%s\":{\"left\":%" PRIu64 ",\"right\":%" PRIu64 ",\"pairs\":%" PRIu64
		",\"evicted\":%" PRIu64 ",\"late\":%" PRIu64 "}",
		name, c->rows[0], c->rows[1], c->pairs, c->evicted[0] + c->evicted[1],
		c->late[0] + c->late[1]);
}

void fay_trace_join_print_end(const struct trace *trace)
{
	static const char *const names[FAY_JOIN_SOURCES - 1] = { "join", "second_join" },
							  *const lefts[FAY_JOIN_SOURCES - 1] = {
								  "events", "pairs"
							  };
	struct fay_pairs_counts counts;
	if (!trace->join)
		return;
	fay_pairs_counts(trace->join->pairs, &counts);
	for (unsigned step = 0; step + 1 < trace->plan->source_count; step++) {
		const struct fay_join_counts *c = &counts.joins[step];
		if (trace->json)
			print_json_counts(trace->json, names[step], c);
		fprintf(trace->messages,
			"fay: joined %" PRIu64 " %s with %" PRIu64 "%s: %" PRIu64 " pairs",
			c->rows[0], lefts[step], c->rows[1], step ? " events" : "", c->pairs);
		if (c->evicted[0] + c->evicted[1] + c->late[0] + c->late[1])
			fprintf(trace->messages,
				"; pairs may be missing: %" PRIu64
				" events were dropped early for want of memory, %" PRIu64
				" came late",
				c->evicted[0] + c->evicted[1], c->late[0] + c->late[1]);
		fprintf(trace->messages, "\n");
	}
	if (trace->json && trace->join->unjoined)
		fprintf(trace->json, ",\"unjoined\":%" PRIu64, trace->join->unjoined);
	if (trace->join->unjoined)
		fprintf(trace->messages,
			"fay: interrupted, and again: %" PRIu64
			" events came that were not joined; pairs are missing\n",
			trace->join->unjoined);
}

struct fay_aggregator *fay_trace_merged(const struct trace *trace)
{
	return trace->join ? trace->join->rows : trace->aggregator;
}

const struct fay_schema *fay_trace_merged_schema(const struct trace *trace)
{
	return trace->join ? &trace->join->schema : trace->schema;
}

static int snapshot(struct trace *trace, uint32_t state, struct fay_result *result,
		    struct fay_error *error)
{
	struct fay_result sources, joined;
	if (!trace->join)
		return fay_aggregator_snapshot(trace->aggregator, state, result, error);
	if (fay_aggregator_snapshot(trace->aggregator, 0, &sources, error))
		return error->code;
	int failed = fay_aggregator_snapshot(trace->join->rows, state, &joined, error);
	*result = sources; /* what was lost, and where */
	if (failed)
		return failed;
	free(result->rows);
	result->rows = joined.rows;
	result->row_count = joined.row_count;
	result->row_size = joined.row_size;
	result->state = joined.state;
	return FAY_OK;
}

int fay_trace_snapshot(struct trace *trace, uint32_t state, struct fay_result *result,
		       struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	int code = snapshot(trace, state, result, error);
	if (!code)
		code = fay_trace_texts_account(trace, result, error);
	trace->measured.merge_ns = fay_monotonic() - since;
	return code;
}
