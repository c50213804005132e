/* SPDX-License-Identifier: MIT */
/*
 * Random joins over random streams: conditions on one side and on both, keys, grouping, aggregates,
 * columns. Both probes run over their events, interleaved at random; their rows go through the
 * join, the stage of the pairs and the aggregator. A reference that looks at every pair of events
 * must give the same rows. FAY_SEED and the first argument are as in test_random.c.
 */
#include "join_shapes.h"

#define STREAMS 4
#define MAX_EVENTS 40
#define MAX_ROWS (MAX_EVENTS * MAX_EVENTS)

struct row {
	struct cell cells[4];
};
static struct {
	struct row rows[MAX_ROWS];
	size_t count;
} want, is;

static struct fay_event events[2][MAX_EVENTS];
static unsigned event_count[2];

static void random_streams(void)
{
	for (unsigned s = 0; s < 2; s++) {
		event_count[s] = below(8) ? below(MAX_EVENTS) : below(3);
		for (unsigned i = 0; i < event_count[s]; i++)
			random_event(&events[s][i]);
	}
}

/* --- the reference --- */

static int64_t evaluate_pair(const struct expression *e, const struct fay_event *a,
			     const struct fay_event *b)
{
	struct fay_event mixed = *b;
	mixed.arg[0] = a->arg[0];
	mixed.arg[2] = a->arg[2];
	mixed.arg[4] = a->arg[4];
	mixed.tid = a->tid;
	mixed.pid = a->pid;
	mixed.function = a->function;
	mixed.time = a->time;
	return evaluate(e->tree, e->of == LEFT ? a : e->of == RIGHT ? b : &mixed);
}

static bool keys_equal(unsigned key, const struct fay_event *a, const struct fay_event *b)
{
	switch (key) {
	case 0: return a->tid == b->tid;
	case 1: return (a->arg[0] & 3) == b->cpu % 3;
	case 2: return !strcmp(a->comm, b->comm);
	case 3: return a->function == b->function && a->tid % 2 == b->tid % 2;
	case 4: return true;
	default: return (a->cpu > 20) == (b->cpu > 20);
	}
}

static bool is_pair(const struct shape *s, const struct fay_event *a, const struct fay_event *b)
{
	uint64_t apart = a->time > b->time ? a->time - b->time : b->time - a->time;
	if (!keys_equal(s->key, a, b) || apart > s->within ||
	    (s->before && !evaluate(s->before, a)))
		return false;
	for (unsigned i = 0; i < s->filter_count; i++)
		if (!evaluate_pair(&s->filters[i], a, b))
			return false;
	return true;
}

/* All pairs, and for groups their keys. */
static struct {
	const struct fay_event *a, *b;
	int64_t key;
} pairs[MAX_ROWS];
static size_t pair_count;

static void find_pairs(const struct shape *s)
{
	pair_count = 0;
	for (unsigned i = 0; i < event_count[0]; i++)
		for (unsigned j = 0; j < event_count[1]; j++) {
			const struct fay_event *a = &events[0][i], *b = &events[1][j];
			if (!is_pair(s, a, b))
				continue;
			pairs[pair_count].a = a;
			pairs[pair_count].b = b;
			pairs[pair_count++].key =
				s->kind == GROUPS ? evaluate_pair(&s->group_key, a, b) : 0;
		}
}

static struct cell aggregate_pairs(const struct aggregate *a, int64_t key)
{
	static struct sample samples[MAX_ROWS];
	size_t count = 0;
	for (size_t p = 0; p < pair_count; p++) {
		if (pairs[p].key != key)
			continue;
		uint64_t left = pairs[p].a->time, right = pairs[p].b->time;
		samples[count++] = (struct sample){
			a->operand.tree ? evaluate_pair(&a->operand, pairs[p].a, pairs[p].b) : 0,
			left > right ? left : right
		};
	}
	return aggregate_samples(a->kind, a->percent % 100, samples, count);
}

static bool key_seen(size_t pair)
{
	for (size_t p = 0; p < pair; p++)
		if (pairs[p].key == pairs[pair].key)
			return true;
	return false;
}

static void refer(const struct shape *s)
{
	find_pairs(s);
	forget_tallies();
	want.count = 0;
	for (size_t p = 0; p < pair_count || (s->kind == VALUE && p == 0); p++) {
		if (s->kind != ROWS && p && key_seen(p))
			continue;
		struct cell *cells = want.rows[want.count++].cells;
		memset(cells, 0, sizeof(want.rows[0].cells));
		for (unsigned i = 0; i < 2 && s->kind == ROWS; i++)
			*cells++ =
				integer_cell(evaluate_pair(&s->columns[i], pairs[p].a, pairs[p].b));
		if (s->kind == GROUPS)
			*cells++ = integer_cell(pairs[p].key);
		for (unsigned i = 0; i < s->aggregate_count; i++)
			*cells++ =
				aggregate_pairs(&s->aggregates[i], pair_count ? pairs[p].key : 0);
	}
}

/* --- the query itself --- */

static struct fay_pairs *pairing;
static struct fay_aggregator *aggregator;
static const struct fay_plan *plan;
static const struct fay_schema *schema;

static void take_result(const uint8_t *row)
{
	struct cell *cells = is.rows[is.count++].cells;
	assert_true(is.count <= MAX_ROWS);
	memset(cells, 0, sizeof(is.rows[0].cells));
	for (uint32_t c = 0; c < plan->column_count; c++)
		cells[c] = cell_of(plan, schema, row, c);
}

static void on_row(void *context, uint32_t state, const uint8_t *row)
{
	assert_null(context);
	assert_int_equal(state, 0);
	take_result(row);
}

static void on_pair(void *context, const uint8_t *row)
{
	struct fay_error error;
	assert_null(context);
	assert_int_equal(fay_aggregator_take_row(aggregator, 0, row, &error), 0);
}

static void on_side(uint64_t state, const uint8_t *row)
{
	fay_pairs_add(pairing, (unsigned)state, row);
}

static void run(struct running *r)
{
	static const uint8_t nothing[4096];
	struct fay_error error;
	struct fay_result result;
	plan = r->plan;
	is.count = 0;
	assert_int_equal(fay_pairs_create(plan, on_pair, NULL, &pairing, &error), 0);
	assert_int_equal(fay_aggregator_create(schema, &aggregator, &error), 0);
	fay_aggregator_on_row(aggregator, on_row, NULL);
	if (plan->scalar)
		fay_aggregator_take_row(aggregator, 0, nothing, &error);
	for (unsigned a = 0, b = 0; a < event_count[0] || b < event_count[1];) {
		if (b == event_count[1] || (a < event_count[0] && below(2)))
			r->probe(&events[0][a++], r->local, NULL);
		else
			r->right(&events[1][b++], r->local, NULL);
	}
	assert_int_equal(fay_aggregator_snapshot(aggregator, 0, &result, &error), 0);
	assert_false(plan->streams && result.row_count);
	struct fay_result finished = result;
	if (plan->finishes)
		assert_int_equal(fay_plan_finish(plan, &result, NULL, NULL, &finished, &error), 0);
	for (size_t i = 0; i < finished.row_count; i++)
		take_result(finished.rows + i * finished.row_size);
	if (plan->finishes)
		fay_result_deinit(&finished);
	fay_result_deinit(&result);
	fay_aggregator_destroy(aggregator);
	fay_pairs_destroy(pairing);
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *x = left, *y = right;
	int c = 0;
	for (unsigned i = 0; i < 4 && !c; i++)
		c = compare_cells(&x->cells[i], &y->cells[i]);
	return c;
}

static void compare(const char *text)
{
	qsort(want.rows, want.count, sizeof(*want.rows), compare_rows);
	qsort(is.rows, is.count, sizeof(*is.rows), compare_rows);
	if (want.count != is.count)
		fail_msg("%s: %zu rows, not %zu", text, is.count, want.count);
	for (size_t r = 0; r < want.count; r++)
		for (uint32_t c = 0; c < plan->column_count; c++)
			if (!equal_cells(&want.rows[r].cells[c], &is.rows[r].cells[c]))
				fail_msg("%s\nrow %zu, %s: %s, not %s", text, r,
					 plan->columns[c].name, describe_cell(&is.rows[r].cells[c]),
					 describe_cell(&want.rows[r].cells[c]));
}

static unsigned queries = 300;

static void random_joins(void **unused)
{
	const char *seed = getenv("FAY_SEED");
	size_t rows = 0;
	(void)unused;
	random_state = seed ? strtoull(seed, NULL, 0) | 1 : 0x5eed;
	print_message("FAY_SEED=%#llx\n", (unsigned long long)random_state);
	for (unsigned q = 0; q < queries; q++) {
		struct shape shape;
		struct running r;
		struct fay_schema own;
		random_join(&shape);
		char *text = text_of_join(&shape);
		start(&r, text);
		on_emit = on_side;
		fay_plan_schema(r.plan, &own);
		schema = &own;
		for (unsigned i = 0; i < STREAMS; i++) {
			random_streams();
			run(&r);
			refer(&shape);
			compare(text);
			rows += want.count;
		}
		stop(&r);
		free(text);
		free_join(&shape);
	}
	print_message("%u pairs of a query and two streams, %zu rows\n", queries * STREAMS, rows);
}

/* Of rows of a state their key, and what is shown of them: a column of `size` bytes. */
static void show_rows(struct fay_result *rows, uint32_t size)
{
	struct fay_result shown = *rows;
	struct fay_schema own;
	struct fay_error error;
	if (plan->finishes) {
		assert_int_equal(fay_plan_finish(plan, rows, NULL, NULL, &shown, &error), 0);
		free(rows->rows);
	}
	fay_plan_result_schema(plan, &own);
	const struct fay_plan_column *value = &plan->columns[1];
	uint32_t offset = value->source == FAY_PLAN_COMPUTED ? value->offset
							     : own.columns[1 + value->index].offset;
	*rows = shown;
	rows->row_size = sizeof(uint64_t) + size;
	rows->rows = calloc(shown.row_count, rows->row_size);
	for (size_t r = 0; r < shown.row_count; r++) {
		const uint8_t *from = shown.rows + r * shown.row_size;
		uint8_t *to = rows->rows + r * rows->row_size;
		memcpy(to, from + own.columns[0].offset, sizeof(uint64_t));
		memcpy(to + sizeof(uint64_t), from + offset, size);
	}
	fay_result_deinit(&shown);
}

/* The rows of a state after all events of the first stream, of the query alone or of the events
 * joined with themselves; with `size` what is shown of them. */
static void rows_of(const char *text, bool joins, uint32_t size, struct fay_result *result)
{
	struct running r;
	struct fay_schema own;
	struct fay_error error;
	start(&r, text);
	on_emit = on_side;
	fay_plan_schema(r.plan, &own);
	schema = &own;
	plan = r.plan;
	assert_int_equal(plan->joins, joins);
	assert_int_equal(fay_aggregator_create(schema, &aggregator, &error), 0);
	if (joins)
		assert_int_equal(fay_pairs_create(plan, on_pair, NULL, &pairing, &error), 0);
	for (unsigned i = 0; i < event_count[0]; i++) {
		r.probe(&events[0][i], r.local, NULL);
		if (joins)
			r.right(&events[0][i], r.local, NULL);
	}
	const struct fay_spec_state *s = &plan->spec.states[0];
	for (uint32_t i = 0; i < s->rows && !joins; i++) {
		const uint8_t *row = r.local + sizeof(struct fay_table_header) + i * s->row_size;
		if (word(row, 0))
			assert_int_equal(fay_aggregator_take_row(aggregator, 0, row, &error), 0);
	}
	assert_int_equal(fay_aggregator_snapshot(aggregator, 0, result, &error), 0);
	if (size)
		show_rows(result, size);
	if (joins)
		fay_pairs_destroy(pairing);
	fay_aggregator_destroy(aggregator);
	stop(&r);
}

/* Each event has one pair, with itself, so every aggregate of the pairs is, byte for byte, that of
 * the events. Probes keep some by bucket: of these it is what is shown. */
static void same_as_events(void **unused)
{
	static const struct {
		const char *text;
		uint32_t shown; /* bytes */
	} aggregates[] = { { "Histogram(x => x.Arg(1))", 8 * FAY_HIST_LOG2_BUCKETS },
			   { "Quantile(0.9, x => x.Arg(1))", FAY_RESULT_COMPUTED_SIZE },
			   { "TopK(1, x => x.tid)", 0 },
			   { "DistinctCount(x => x.comm)", 0 },
			   { "DistinctCount(x => x.Arg(2))", 0 },
			   { "StdDev(x => x.Arg(3))", 0 },
			   { "First(x => x.Arg(4))", 0 },
			   { "Last(x => x.time)", 0 },
			   { "Min(x => x.time)", 0 },
			   { "Average(x => x.Arg(5))", 0 },
			   { "Max(x => x.Arg(2) >> 3)", 0 } };
	(void)unused;
	random_state = 0x5eed;
	event_count[0] = MAX_EVENTS;
	for (unsigned i = 0; i < MAX_EVENTS; i++) {
		random_event(&events[0][i]);
		events[0][i].time = NOW + 1000 * i;
	}
	for (size_t i = 0; i < sizeof(aggregates) / sizeof(aggregates[0]); i++) {
		char alone[512], joined[512];
		struct fay_result one, two;
		snprintf(alone, sizeof(alone),
			 "from x in cluster.Function(\"a!b\") group x by x.tid into g select new { "
			 "g.Key, v = g.%s }",
			 aggregates[i].text);
		snprintf(joined, sizeof(joined),
			 "from x in cluster.Function(\"a!b\") join y in cluster.Function(\"a!b\") "
			 "on x.cycles equals y.cycles within 999 "
			 "group x by y.tid into g select new { g.Key, v = g.%s }",
			 aggregates[i].text);
		rows_of(alone, false, aggregates[i].shown, &one);
		rows_of(joined, true, aggregates[i].shown, &two);
		if (one.row_count != two.row_count || one.row_size != two.row_size ||
		    memcmp(one.rows, two.rows, one.row_count * one.row_size))
			fail_msg("%s: pairs give something else than events", aggregates[i].text);
		fay_result_deinit(&one);
		fay_result_deinit(&two);
	}
}

static int prepare(void **unused)
{
	(void)unused;
	return prepare_jit();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_joins),
					    cmocka_unit_test(same_as_events) };
	if (argc > 1)
		queries = (unsigned)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests_name("joins", tests, prepare, NULL);
}
