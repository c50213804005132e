/* SPDX-License-Identifier: MIT */
/*
 * Random joins over random streams: conditions on one side and on both, keys, grouping, aggregates,
 * columns. Both probes run over their events, interleaved at random; their rows go through the
 * join, the stage of the pairs and the aggregator. A reference that looks at every pair of events
 * must give the same rows. FAY_SEED and the first argument are as in test_random.c.
 */
#include "summaries.h"
#include "trees.h"

#define STREAMS 4
#define MAX_EVENTS 40
#define MAX_ROWS (MAX_EVENTS * MAX_EVENTS)

/* A random expression in which each field is of the left event, of the right one, or of one of
 * them. */
enum of { LEFT, RIGHT, BOTH };
struct expression {
	enum of of;
	struct tree *tree;
};

struct aggregate {
	enum kind kind;
	unsigned k, percent;       /* TOP, QUANTILE */
	struct expression operand; /* tree NULL: COUNT */
};

struct shape {
	enum { VALUE, GROUPS, ROWS } kind;
	unsigned filter_count, aggregate_count, key; /* key: of the join, an index of join_keys */
	struct expression filters[3], group_key, columns[2];
	struct tree *before; /* condition on the left events, before the join; or NULL */
	struct aggregate aggregates[3];
	uint64_t within;
};

static const struct {
	const char *left, *right;
} join_keys[] = { { "a.tid", "b.tid" },
		  { "a.Arg(0) & 3", "b.cpu % 3" },
		  { "a.comm", "b.comm" },
		  { "new { a.function, k = a.tid % 2 }", "new { b.function, k = b.tid % 2 }" },
		  { "7", "7" },
		  { "a.cpu > 20", "b.cpu > 20" } };

struct row {
	struct cell cells[4];
};
static struct {
	struct row rows[MAX_ROWS];
	size_t count;
} want, is;

static struct fay_event events[2][MAX_EVENTS];
static unsigned event_count[2];

/* --- making them up --- */

static struct expression random_expression(bool is_bool, unsigned depth)
{
	return (struct expression){ (enum of)below(3), random_tree(is_bool, depth) };
}

static void random_shape(struct shape *s)
{
	static const uint64_t apart[] = { 0, 1, 20, 300, 5000, INT64_MAX };
	memset(s, 0, sizeof(*s));
	s->kind = below(3);
	s->key = below(sizeof(join_keys) / sizeof(join_keys[0]));
	s->within = apart[below(6)];
	s->before = below(3) ? NULL : random_tree(true, 2);
	s->filter_count = below(4);
	for (unsigned i = 0; i < s->filter_count; i++)
		s->filters[i] = random_expression(true, 2);
	s->aggregate_count = s->kind == VALUE ? 1 : s->kind == GROUPS ? 1 + below(3) : 0;
	for (unsigned i = 0; i < s->aggregate_count; i++) {
		struct aggregate *a = &s->aggregates[i];
		/* A row has room for one of the large ones, or for several of those of a middle
		 * size. */
		a->kind = (enum kind)below(i == 0                         ? KINDS
					   : s->aggregates[0].kind >= TOP ? TOP
									  : QUANTILE);
		a->k = 1 + below(8);
		a->percent = below(101);
		if (a->kind != COUNT)
			a->operand = random_expression(IS_TEST(a->kind), 2);
	}
	if (s->kind == GROUPS)
		s->group_key = random_expression(below(2), 1);
	for (unsigned i = 0; i < 2 && s->kind == ROWS; i++)
		s->columns[i] = random_expression(false, 2);
}

static void free_shape(struct shape *s)
{
	free_tree(s->before);
	free_tree(s->group_key.tree);
	for (unsigned i = 0; i < 3; i++) {
		free_tree(s->filters[i].tree);
		free_tree(s->aggregates[i].operand.tree);
	}
	for (unsigned i = 0; i < 2; i++)
		free_tree(s->columns[i].tree);
}

static void random_streams(void)
{
	for (unsigned s = 0; s < 2; s++) {
		event_count[s] = below(8) ? below(MAX_EVENTS) : below(3);
		for (unsigned i = 0; i < event_count[s]; i++)
			random_event(&events[s][i]);
	}
}

/* --- as text --- */

/* Whether what stands behind `x.` is the left event's in an expression of both. */
static bool is_left(const char *name)
{
	static const char *const lefts[] = { "Arg(0)", "Arg(2)",   "Arg(4)", "tid",
					     "pid",    "function", "time" };
	for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++)
		if (!strncmp(name, lefts[i], strlen(lefts[i])))
			return true;
	return false;
}

/* Trees are of an event `x`: here of `a` and `b`, members of what `prefix` names. */
static void print_expression(FILE *out, const char *prefix, const struct expression *e)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	assert_non_null(memory);
	print_tree(memory, e->tree);
	fclose(memory);
	for (const char *c = text; *c; c++) {
		bool event = c[0] == 'x' && c[1] == '.' && (c == text || strchr(" (!~", c[-1]));
		if (event)
			fprintf(out, "%s%c", prefix,
				e->of == LEFT || (e->of == BOTH && is_left(c + 2)) ? 'a' : 'b');
		else
			fputc(*c, out);
	}
	free(text);
}

static void print_aggregate(FILE *out, const char *of, const struct aggregate *a)
{
	fprintf(out, "%s.%s(", of, aggregate_names[a->kind]);
	if (a->kind == TOP)
		fprintf(out, "%u, ", a->k);
	if (a->kind == QUANTILE)
		fprintf(out, "0.%02u, ", a->percent % 100);
	if (a->operand.tree) {
		fputs("x => ", out);
		print_expression(out, "x.", &a->operand);
	}
	fputc(')', out);
}

static void print_result(FILE *out, const struct shape *s)
{
	if (s->kind == VALUE) {
		fputs(" select new { a, b })", out);
		print_aggregate(out, "", &s->aggregates[0]);
		return;
	}
	if (s->kind == ROWS) {
		fputs(" select new { c0 = ", out);
		print_expression(out, "", &s->columns[0]);
		fputs(", c1 = ", out);
		print_expression(out, "", &s->columns[1]);
		fputs(" }", out);
		return;
	}
	fputs(" group new { a, b } by ", out);
	print_expression(out, "", &s->group_key);
	fputs(" into g select new { k = g.Key", out);
	for (unsigned i = 0; i < s->aggregate_count; i++) {
		fprintf(out, ", a%u = ", i);
		print_aggregate(out, "g", &s->aggregates[i]);
	}
	fputs(" }", out);
}

static char *text_of_shape(const struct shape *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	fprintf(out, "%sfrom a in cluster.Function(\"a!b\")", s->kind == VALUE ? "(" : "");
	if (s->before) {
		fputs(" where ", out);
		print_expression(out, "", &(struct expression){ LEFT, s->before });
	}
	fprintf(out, " join b in cluster.Function(\"c!d\") on %s equals %s within %llu",
		join_keys[s->key].left, join_keys[s->key].right, (unsigned long long)s->within);
	for (unsigned i = 0; i < s->filter_count; i++) {
		fputs(" where ", out);
		print_expression(out, "", &s->filters[i]);
	}
	print_result(out, s);
	fclose(out);
	return text;
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
		random_shape(&shape);
		char *text = text_of_shape(&shape);
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
		free_shape(&shape);
	}
	print_message("%u pairs of a query and two streams, %zu rows\n", queries * STREAMS, rows);
}

/* The rows of a state after all events of the first stream, of the query alone or of the events
 * joined with themselves. */
static void rows_of(const char *text, bool joins, struct fay_result *result)
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
	if (joins)
		fay_pairs_destroy(pairing);
	fay_aggregator_destroy(aggregator);
	stop(&r);
}

/* Each event has one pair, with itself, so every aggregate of the pairs is, byte for byte, that of
 * the events. */
static void same_as_events(void **unused)
{
	static const char *const aggregates[] = { "Histogram(x => x.Arg(1))",
						  "Quantile(0.9, x => x.Arg(1))",
						  "TopK(1, x => x.tid)",
						  "DistinctCount(x => x.comm)",
						  "DistinctCount(x => x.Arg(2))",
						  "StdDev(x => x.Arg(3))",
						  "First(x => x.Arg(4))",
						  "Last(x => x.time)",
						  "Min(x => x.time)",
						  "Average(x => x.Arg(5))",
						  "Max(x => x.Arg(2) >> 3)" };
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
			 aggregates[i]);
		snprintf(joined, sizeof(joined),
			 "from x in cluster.Function(\"a!b\") join y in cluster.Function(\"a!b\") "
			 "on x.cycles equals y.cycles within 999 "
			 "group x by y.tid into g select new { g.Key, v = g.%s }",
			 aggregates[i]);
		rows_of(alone, false, &one);
		rows_of(joined, true, &two);
		if (one.row_count != two.row_count || one.row_size != two.row_size ||
		    memcmp(one.rows, two.rows, one.row_count * one.row_size))
			fail_msg("%s: pairs give something else than events", aggregates[i]);
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
