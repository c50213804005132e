/* SPDX-License-Identifier: MIT */
/*
 * Random queries over random event streams: conditions, windows of time, groups, aggregates, computing with them, conditions on them, order, skip and take. The
 * query's probe runs over the events (two halves, as two threads would), the rows go through the aggregator and the root stage; a plain reference, which keeps
 * all events and knows nothing of query/, must give the same rows in the same order. FAY_SEED sets the seed (printed), the first argument how many queries
 * there are; each meets five streams. `kernel N`: as BPF programs, over the system calls of a child, each over 25 streams.
 */
#include "cells.h"
#include "fay/order.h"
#include "kernel_stream.h"
#include "shapes.h"

#define STREAMS 5
#define MAX_EVENTS 160
#define SPAN (20 * MS) /* from the first event to the last */

#define MAX_COLUMNS 8
struct row {
	struct cell cells[MAX_COLUMNS];
	uint64_t first, last; /* GROUPS: times of events */
};
struct table {
	struct row rows[MAX_EVENTS * 2];
	size_t count;
};

static struct fay_event events[MAX_EVENTS];
static unsigned event_count;

/* --- making them up --- */

static void random_stream(void)
{
	event_count = below(8) ? 20 + below(MAX_EVENTS - 20) : below(3);
	for (unsigned i = 0; i < event_count; i++) {
		struct fay_event *e = &events[i];
		random_event(e);
		e->time = NOW + random_word() % (SPAN / MAX_EVENTS) * MAX_EVENTS +
			  i; /* each its own; not in order */
		e->cpu = below(4);
		if (below(2))
			e->arg[0] = below(5);
	}
}

/* --- the reference --- */

static struct cell key_of(const struct shape *s, unsigned i, const struct fay_event *e)
{
	struct cell c = {.kind = STRING};
	switch (s->keys[i].kind) {
	case KEY_TID:
		return integer_cell(e->tid);
	case KEY_CPU:
		return integer_cell(e->cpu % 3);
	case KEY_COMM:
		snprintf(c.string, sizeof(c.string), "%s", e->comm);
		return c;
	case KEY_FUNCTION:
		return (struct cell){.kind = WORD, .integer = (int64_t)e->function};
	case KEY_ARG:
		return integer_cell((int64_t)e->arg[0] & 3);
	default:
		return integer_cell(evaluate(s->keys[i].tree, e));
	}
}

/* Over the events that are marked. */
static struct cell aggregate(const struct aggregate *a, const bool *takes_part)
{
	struct sample samples[MAX_EVENTS];
	size_t count = 0;
	for (unsigned i = 0; i < event_count; i++)
		if (takes_part[i])
			samples[count++] = (struct sample){a->operand ? evaluate(a->operand, &events[i]) : 0, events[i].time};
	return aggregate_samples(a->kind, samples, count);
}

static struct cell compute(char operator, struct cell x, struct cell y)
{
	if (x.kind == NONE || y.kind == NONE)
		return (struct cell){NONE};
	__int128 a = x.integer, b = y.integer;
	if (operator== '*')
		return integer_cell((int64_t)((uint64_t)x.integer * (uint64_t)y.integer));
	if (operator== '/')
		return integer_cell(b ? (int64_t)(a / b) : 0);
	return integer_cell((int64_t)(operator== '+' ? a + b : a - b));
}

static bool passes(const struct shape *s, const struct fay_event *e, unsigned filters)
{
	for (unsigned i = 0; i < filters; i++)
		if (!evaluate(s->filters[i], e))
			return false;
	return true;
}

static void add_group(const struct shape *s, unsigned of_event, const bool *in_window,
		      uint64_t window, struct table *t)
{
	bool takes_part[MAX_EVENTS] = {false};
	struct row *row = &t->rows[t->count];
	struct cell *next = row->cells;
	memset(row, 0, sizeof(*row));
	row->first = UINT64_MAX;
	for (unsigned i = 0; i < event_count; i++) {
		takes_part[i] = in_window[i];
		for (unsigned k = 0; k < s->key_count && takes_part[i]; k++) {
			struct cell own = key_of(s, k, &events[of_event]),
				    other = key_of(s, k, &events[i]);
			takes_part[i] = compare_cells(&own, &other) == 0;
		}
		if (takes_part[i] && i < of_event && s->kind == GROUPS)
			return; /* an earlier event's group */
		if (takes_part[i] && events[i].time < row->first)
			row->first = events[i].time;
		if (takes_part[i] && events[i].time > row->last)
			row->last = events[i].time;
	}
	if (has_windows(s))
		*next++ = (struct cell){.kind = WORD, .integer = (int64_t)window};
	for (unsigned k = 0; k < s->key_count; k++)
		*next++ = key_of(s, k, &events[of_event]);
	struct cell *aggregates = next;
	for (unsigned a = 0; a < s->aggregate_count; a++)
		*next++ = aggregate(&s->aggregates[a], takes_part);
	if (s->computes)
		*next = compute(s->operator, aggregates[0], aggregates[1]);
	if (!s->has_condition || (aggregates[0].kind != NONE && aggregates[0].integer > s->limit))
		t->count++;
}

static const struct shape *sorted_shape;

static int compare_rows(const void *left, const void *right)
{
	const struct row *x = left, *y = right;
	const struct shape *s = sorted_shape;
	unsigned before = has_windows(s);
	for (unsigned i = 0; i < s->order_count; i++) {
		int c = compare_cells(&x->cells[before + s->orders[i].column],
				&y->cells[before + s->orders[i].column]);
		if (c)
			return s->orders[i].descending ? -c : c;
	}
	for (unsigned k = 0; k < (s->regroups ? 1 : s->key_count); k++) {
		int c = compare_cells(&x->cells[before + k], &y->cells[before + k]);
		if (c)
			return c;
	}
	return (int)x->cells[MAX_COLUMNS - 1].integer -
	       (int)y->cells[MAX_COLUMNS - 1].integer; /* ROWS: as they came */
}

/* What the second grouping makes of one group's key and aggregate. */
static struct cell outer_key(const struct shape *s, const struct cell *key, const struct cell *value)
{
	if (s->regroup_key == BY_KEY)
		return *key;
	if (s->regroup_key == ALL_TOGETHER)
		return integer_cell(1);
	if (value->kind == NONE)
		return integer_cell(0);
	return integer_cell(s->regroup_key == BY_REST ? value->integer % 3 : value->integer);
}

/* Over the groups that are marked, in the order in which they lie. */
static struct cell outer_aggregate(const struct shape *s, enum kind kind, const struct table *t, const bool *takes_part)
{
	static struct sample samples[MAX_EVENTS * 2];
	size_t taken = 0;
	for (size_t r = 0; r < t->count; r++) {
		const struct cell *value = &t->rows[r].cells[1 + has_windows(s)];
		bool test = kind == COUNT_IF || kind == ANY || kind == ALL;
		if (!takes_part[r] || (value->kind == NONE && !test && kind != COUNT))
			continue;
		samples[taken].time = s->inner_order ? r : kind == FIRST ? t->rows[r].first : t->rows[r].last;
		samples[taken++].value = test ? value->kind != NONE && value->integer > s->limit : value->integer;
	}
	return aggregate_samples(kind, samples, taken);
}

/* The order that groups have before they are grouped: by the aggregate if it is asked for; equal ones by the key. */
static int compare_inner(const void *left, const void *right)
{
	unsigned before = has_windows(sorted_shape);
	const struct cell *x = ((const struct row *)left)->cells + before, *y = ((const struct row *)right)->cells + before;
	int c = sorted_shape->inner_order ? compare_cells(&x[1], &y[1]) : 0;
	if (c)
		return sorted_shape->inner_order == DESCENDING ? -c : c;
	return compare_cells(&x[0], &y[0]);
}

static void regroup(const struct shape *s, struct table *t)
{
	static struct table out;
	static bool takes_part[MAX_EVENTS * 2];
	unsigned before = has_windows(s);
	out.count = 0;
	qsort(t->rows, t->count, sizeof(*t->rows), compare_inner);
	for (size_t r = 0; r < t->count; r++) {
		const struct cell *own = &t->rows[r].cells[before];
		struct cell key = outer_key(s, own, own + 1);
		bool seen = false;
		for (size_t o = 0; o < t->count; o++) {
			const struct cell *other = &t->rows[o].cells[before];
			struct cell other_key = outer_key(s, other, other + 1);
			takes_part[o] = compare_cells(&key, &other_key) == 0;
			seen |= takes_part[o] && o < r;
		}
		if (seen)
			continue;
		struct cell *cells = out.rows[out.count++].cells;
		if (before)
			*cells++ = t->rows[r].cells[0];
		*cells++ = key;
		for (unsigned i = 0; i < 2; i++)
			*cells++ = outer_aggregate(s, s->kinds[i], t, takes_part);
	}
	*t = out;
}

static unsigned ranks[MAX_EVENTS]; /* how many events happened before of those that pass what stands before the window */

static unsigned rank_events(const struct shape *s)
{
	unsigned passed = 0;
	memset(ranks, 0, sizeof(ranks));
	for (unsigned i = 0; i < event_count; i++) {
		if (!passes(s, &events[i], s->before))
			continue;
		passed++;
		for (unsigned e = 0; e < event_count; e++)
			ranks[e] += events[i].time < events[e].time;
	}
	return passed;
}

static bool lies_in(const struct shape *s, unsigned i, uint64_t start)
{
	if (s->every)
		return ranks[i] / s->every == start;
	return !s->step || (events[i].time >= start && events[i].time < start + s->width);
}

/* The rows that the window [start, start + width), or the one of so many events number `start`, must have; without windows: all. */
static void refer(const struct shape *s, uint64_t start, struct table *t)
{
	bool in_window[MAX_EVENTS];
	for (unsigned i = 0; i < event_count; i++)
		in_window[i] = passes(s, &events[i], s->filter_count) && lies_in(s, i, start);
	t->count = 0;
	forget_tallies();
	if (s->kind == VALUE)
		add_group(s, 0, in_window, start, t);
	for (unsigned i = 0; i < event_count && s->kind != VALUE; i++) {
		if (!in_window[i])
			continue;
		if (s->kind == GROUPS) {
			add_group(s, i, in_window, start, t);
			continue;
		}
		struct row *row = &t->rows[t->count++];
		memset(row, 0, sizeof(*row));
		for (unsigned c = 0; c < 2; c++)
			row->cells[c] = integer_cell(evaluate(s->columns[c], &events[i]));
		row->cells[MAX_COLUMNS - 1].integer = i;
	}
	sorted_shape = s;
	if (s->regroups)
		regroup(s, t);
	qsort(t->rows, t->count, sizeof(*t->rows), compare_rows);
	size_t skip = s->skip < 0 ? 0 : (size_t)s->skip < t->count ? (size_t)s->skip : t->count;
	memmove(t->rows, t->rows + skip, (t->count - skip) * sizeof(*t->rows));
	t->count -= skip;
	if (s->take >= 0 && (size_t)s->take < t->count)
		t->count = (size_t)s->take;
}

/* --- the query itself --- */

static void take_rows(struct running *r, struct fay_aggregator *aggregator)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	struct fay_error error = {0};
	unsigned char *rows = r->local + sizeof(struct fay_table_header);
	for (uint32_t i = 0; i < s->rows; i++, rows += s->row_size)
		if (word(rows, 0))
			assert_int_equal(fay_aggregator_take_row(aggregator, 0, rows, &error), 0);
	memset(r->local, 0, s->size);
}

/* Merged rows, or for ROWS those that were emitted. */
static void run_probe(struct running *r, const struct fay_schema *schema, struct fay_result *merged)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	struct fay_aggregator *aggregator;
	struct fay_error error = {0};
	handed_count = 0;
	memset(r->local, 0, r->plan->spec.local_size);
	memset(merged, 0, sizeof(*merged));
	assert_int_equal(fay_aggregator_create(schema, &aggregator, &error), 0);
	for (unsigned i = 0; i < event_count; i++) {
		if (i == event_count / 2 && s->kind == FAY_STATE_TABLE)
			take_rows(r, aggregator);
		r->probe(&events[i], r->local, NULL);
	}
	if (s->kind == FAY_STATE_TABLE) {
		take_rows(r, aggregator);
		assert_int_equal(fay_aggregator_snapshot(aggregator, 0, merged, &error), 0);
	} else {
		merged->row_size = s->row_size;
		merged->row_count = s->kind == FAY_STATE_CELL ? 1 : handed_count;
		merged->rows = malloc(merged->row_count * s->row_size + 1);
		if (merged->row_count)
			memcpy(merged->rows, s->kind == FAY_STATE_CELL ? r->local : handed_on,
			       merged->row_count * s->row_size);
	}
	fay_aggregator_destroy(aggregator);
}

static void check(const char *text, const struct fay_plan *plan, const struct fay_schema *schema,
		  const struct fay_result *result, const struct table *want)
{
	if (result->row_count != want->count)
		fail_msg("%s: %zu rows, not %zu", text, result->row_count, want->count);
	for (size_t r = 0; r < want->count; r++)
		for (uint32_t c = 0; c < plan->column_count; c++) {
			struct cell got =
				cell_of(plan, schema, result->rows + r * result->row_size, c);
			if (!equal_cells(&want->rows[r].cells[c], &got))
				fail_msg("%s\nrow %zu, %s: (%d) %lld %g %s, not (%d) %lld %g %s",
					 text, r, plan->columns[c].name, got.kind,
					 (long long)got.integer, got.real, got.string,
					 want->rows[r].cells[c].kind,
					 (long long)want->rows[r].cells[c].integer,
					 want->rows[r].cells[c].real,
					 want->rows[r].cells[c].string);
		}
}

/* Rows that are shown as they come: the plan says which part of them. */
static void cut(const struct fay_plan *plan, struct fay_result *rows)
{
	size_t skip = plan->first_row < rows->row_count ? (size_t)plan->first_row : rows->row_count;
	memmove(rows->rows, rows->rows + skip * rows->row_size,
		(rows->row_count - skip) * rows->row_size);
	rows->row_count -= skip;
	if (rows->row_count > plan->row_limit)
		rows->row_count = (size_t)plan->row_limit;
}

static void finish_and_check(const char *text, const struct fay_plan *plan,
			     const struct fay_schema *schema, const struct fay_result *rows,
			     const struct table *want)
{
	struct fay_result finished;
	struct fay_error error = {0};
	if (fay_plan_finish(plan, rows, NULL, NULL, &finished, &error))
		fail_msg("%s: %s", text, error.message);
	check(text, plan, schema, &finished, want);
	fay_result_deinit(&finished);
}

/* Without windows. `merged` is the caller's. */
static void check_merged(const struct shape *s, const char *text, const struct fay_plan *plan, const struct fay_schema *shown, struct fay_result *merged)
{
	static struct table want;
	refer(s, 0, &want);
	if (plan->streams && !plan->collects)
		cut(plan, merged);
	if (plan->finishes)
		finish_and_check(text, plan, shown, merged, &want);
	else
		check(text, plan, shown, merged, &want);
}

/* Windows of so many events, filled as fay's aggregator does. */
struct counting {
	const struct shape *shape;
	const char *text;
	const struct fay_plan *plan;
	const struct fay_schema *schema, *shown;
	struct fay_aggregator *windows;
	uint64_t number;
	unsigned events;
};

static void close_window(struct counting *c)
{
	static struct table want;
	struct fay_result all, rows;
	struct fay_error error = {0};
	refer(c->shape, c->number++, &want);
	assert_int_equal(fay_aggregator_snapshot(c->windows, 0, &all, &error), 0);
	assert_int_equal(fay_plan_window(c->plan, c->schema, &all, c->number, &rows, &error), 0);
	finish_and_check(c->text, c->plan, c->shown, &rows, &want);
	fay_result_deinit(&rows);
	fay_result_deinit(&all);
	fay_aggregator_forget(c->windows, 0, c->number);
	c->events = 0;
}

static void count_event(void *context, const uint8_t *event)
{
	struct counting *c = context;
	struct fay_error error = {0};
	uint8_t row[4096];
	if (fay_plan_event(c->plan, c->number, event, row))
		assert_int_equal(fay_aggregator_take_row(c->windows, 0, row, &error), 0);
	if (++c->events == c->plan->window_events)
		close_window(c);
}

static void check_counted(const struct shape *s, const char *text, const struct fay_plan *plan, const struct fay_schema *shown, const struct fay_result *rows)
{
	struct fay_schema schema;
	struct counting c = {.shape = s, .text = text, .plan = plan, .schema = &schema, .shown = shown};
	struct fay_order *order;
	struct fay_error error = {0};
	unsigned passed = rank_events(s);
	fay_plan_schema(plan, &schema);
	assert_int_equal(rows->row_size, plan->event_size);
	assert_int_equal(fay_aggregator_create(&schema, &c.windows, &error), 0);
	assert_int_equal(fay_order_create(plan->event_size, plan->event_time_offset, 0, count_event, &c, &order, &error), 0);
	for (size_t r = 0; r < rows->row_count; r++)
		fay_order_add(order, rows->rows + r * rows->row_size);
	fay_order_advance(order, UINT64_MAX);
	if (c.events)
		close_window(&c);
	assert_int_equal(c.number, (passed + s->every - 1) / s->every);
	fay_order_destroy(order);
	fay_aggregator_destroy(c.windows);
}

static void check_stream(const struct shape *s, const char *text, struct running *r,
			 const struct fay_schema *schema, const struct fay_schema *shown)
{
	static struct table want;
	struct fay_result merged;
	struct fay_error error = {0};
	const struct fay_plan *plan = r->plan;
	run_probe(r, schema, &merged);
	for (uint64_t end = NOW - NOW % (s->step ? s->step : 1) + s->step; s->step && end < NOW + SPAN + s->width + s->step; end += s->step) {
		struct fay_result window;
		refer(s, end - s->width, &want);
		assert_int_equal(fay_plan_window(plan, schema, &merged, end, &window, &error), 0);
		finish_and_check(text, plan, shown, &window, &want);
		fay_result_deinit(&window);
	}
	if (s->every)
		check_counted(s, text, plan, shown, &merged);
	else if (!s->step)
		check_merged(s, text, plan, shown, &merged);
	fay_result_deinit(&merged);
}

static unsigned queries = 1000;

static void random_queries(void **unused)
{
	const char *seed = getenv("FAY_SEED");
	random_state = seed ? strtoull(seed, NULL, 0) | 1 : 0x5eed;
	print_message("FAY_SEED=%#llx\n", (unsigned long long)random_state);
	for (unsigned q = 0; q < queries; q++) {
		struct shape shape;
		struct running r;
		struct fay_schema schema, shown;
		random_shape(&shape);
		char *text = text_of_shape(&shape, "cluster.Function(\"a!b\")");
		start(&r, text);
		fay_plan_schema(r.plan, &schema);
		fay_plan_result_schema(r.plan, &shown);
		for (unsigned i = 0; i < STREAMS; i++) {
			random_stream();
			check_stream(&shape, text, &r, &schema, &shown);
		}
		stop(&r);
		free(text);
		free_shape(&shape);
	}
	print_message("%u pairs of a query and a stream\n", queries * STREAMS);
}

/* --- in the kernel --- */

#define KERNEL_SOURCE "cluster.Syscall(\"[rw]*e*\")" /* of what the child calls these are `read` and `write` */
#define PREFIXES 25

/* A query that BPF takes, and whose answer does not hang on when exactly something was called. */
static char *random_kernel_shape(struct shape *s)
{
	for (;;) {
		random_shape(s);
		s->step = s->width = 0;
		char *text = text_of_shape(s, KERNEL_SOURCE);
		if (!strstr(text, "x.time") && !strstr(text, "x.cycles") && !strstr(text, "x.module"))
			return text;
		free(text);
		free_shape(s);
	}
}

/* Events as the child will make them, in the order of time. */
static void random_calls(pid_t child)
{
	unsigned cpu = kernel_stream_processor(0);
	for (unsigned i = 0; i < MAX_EVENTS; i++) {
		struct fay_event *e = &events[i];
		random_event(e);
		e->time = NOW + i;
		e->pid = e->tid = (uint32_t)child;
		cpu = below(16) ? cpu : kernel_stream_processor(below(64));
		e->cpu = cpu;
		if (below(2))
			e->arg[0] = below(5);
	}
}

/* One query over the prefixes of a stream of system calls, each of which is a stream. */
static void check_prefixes(void)
{
	struct shape shape;
	struct fay_schema shown;
	char *text = random_kernel_shape(&shape);
	struct kernel_stream *stream = kernel_stream_start(text);
	const struct fay_plan *plan = kernel_stream_plan(stream);
	random_calls(kernel_stream_child(stream));
	fay_plan_result_schema(plan, &shown);
	event_count = 0;
	for (unsigned i = 0; i < PREFIXES; i++) {
		struct fay_result merged;
		unsigned more = 1 + below(MAX_EVENTS / PREFIXES);
		kernel_stream_make(stream, events + event_count, more);
		event_count += more;
		kernel_stream_take(stream, &merged);
		if (shape.every)
			check_counted(&shape, text, plan, &shown, &merged);
		else
			check_merged(&shape, text, plan, &shown, &merged);
		fay_result_deinit(&merged);
	}
	kernel_stream_end(stream);
	free(text);
	free_shape(&shape);
}

static void random_kernel_queries(void **unused)
{
	const char *seed = getenv("FAY_SEED");
	random_state = seed ? strtoull(seed, NULL, 0) | 1 : 0x5eed;
	print_message("FAY_SEED=%#llx\n", (unsigned long long)random_state);
	for (unsigned q = 0; q < queries; q++)
		check_prefixes();
	print_message("%u pairs of a query and a stream of system calls\n", queries * PREFIXES);
}

static int prepare(void **unused)
{
	return prepare_jit();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_queries)};
	const struct CMUnitTest kernel_tests[] = {cmocka_unit_test(random_kernel_queries)};
	bool kernel = argc > 1 && strcmp(argv[1], "kernel") == 0;
	const char *count = kernel ? argv[2] : argv[1], *why = kernel ? kernel_stream_refused() : NULL;
	if (count)
		queries = (unsigned)strtoul(count, NULL, 0);
	if (why) {
		printf("SKIPPED: %s\n", why);
		return 77;
	}
	return kernel ? cmocka_run_group_tests_name("random queries in the kernel", kernel_tests, NULL, NULL)
		      : cmocka_run_group_tests_name("random queries", tests, prepare, NULL);
}
