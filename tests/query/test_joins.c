/* SPDX-License-Identifier: MIT */
/*
 * Random queries with two joins, and with joins that make groups (`into`), over random streams; a
 * reference that looks at all combinations of events must give the same rows. FAY_SEED and the
 * first argument are as in test_random.c.
 */
#include "tests/query/reference/summaries.h"
#include "tests/query/reference/trees.h"

#define MAX_EVENTS 14
#define MAX_ROWS (MAX_EVENTS * MAX_EVENTS * MAX_EVENTS)
#define CELLS 6

typedef const struct fay_event *event;
static struct fay_event events[3][MAX_EVENTS];
static unsigned event_count[3];

/* What a query says, and what that means. `sources`: so many must be known where it stands. */
struct said {
	const char *text;
	int64_t (*means)(event a, event b, event c);
	unsigned sources;
};
#define SAID(name, what, count, value)                                                             \
	static int64_t name(event a, event b, event c)                                             \
	{                                                                                          \
		(void)a, (void)b, (void)c;                                                         \
		return (int64_t)(value);                                                           \
	}                                                                                          \
	enum { name##_sources = count };                                                           \
	static const char name##_text[] = what;
#define AS_SAID(name) { name##_text, name, name##_sources }

SAID(always, "true", 1, true)
SAID(never, "1 == 2", 1, false)
SAID(some_a, "a.cpu > 9", 1, a->cpu > 9)
SAID(a_named, "a.comm.StartsWith(\"redis\")", 1, !strncmp(a->comm, "redis", 5))
SAID(some_b, "b.cpu % 4 != 1", 2, b->cpu % 4 != 1)
SAID(b_later, "b.time >= a.time", 2, b->time >= a->time)
SAID(ab, "a.cpu + b.cpu < 90", 2, a->cpu + b->cpu < 90)
SAID(some_c, "c.cpu > 5", 3, c->cpu > 5)
SAID(c_later, "c.time > b.time", 3, c->time > b->time)
SAID(abc, "(a.cpu ^ b.cpu) != c.cpu", 3, (a->cpu ^ b->cpu) != c->cpu)
static const struct said conditions[] = { AS_SAID(always), AS_SAID(some_a),  AS_SAID(a_named),
					  AS_SAID(some_b), AS_SAID(b_later), AS_SAID(ab),
					  AS_SAID(some_c), AS_SAID(c_later), AS_SAID(abc),
					  AS_SAID(never) };

SAID(tid_ab, "a.tid equals b.tid", 2, a->tid == b->tid)
SAID(name_ab, "new { a.comm, k = a.cpu & 1 } equals new { b.comm, k = b.cpu & 1 }", 2,
     !strcmp(a->comm, b->comm) && !((a->cpu ^ b->cpu) & 1))
SAID(all_ab, "1 equals 1", 2, true)
static const struct said first_keys[] = { AS_SAID(tid_ab), AS_SAID(name_ab), AS_SAID(all_ab) };

SAID(tid_bc, "b.tid equals c.tid", 3, b->tid == c->tid)
SAID(sum_c, "(a.cpu + b.cpu) % 3 equals c.cpu % 3", 3, (a->cpu + b->cpu) % 3 == c->cpu % 3)
SAID(names_c, "new { a.comm, t = b.tid } equals new { c.comm, t = c.tid }", 3,
     !strcmp(a->comm, c->comm) && b->tid == c->tid)
SAID(all_c, "7 equals 7", 3, true)
static const struct said second_keys[] = { AS_SAID(tid_bc), AS_SAID(sum_c), AS_SAID(names_c),
					   AS_SAID(all_c) };

SAID(arg_a, "a.Arg(1)", 1, a->arg[1])
SAID(cpu_a, "a.cpu", 1, a->cpu)
SAID(apart_ab, "b.time - a.time", 2, b->time - a->time)
SAID(mixed_ab, "a.Arg(0) ^ b.Arg(2) + b.cpu", 2, a->arg[0] ^ (b->arg[2] + b->cpu))
SAID(arg_c, "c.Arg(3)", 3, c->arg[3])
SAID(mixed_abc, "a.cpu * 100 + b.cpu * 10 + c.cpu", 3, a->cpu * 100 + b->cpu * 10 + c->cpu)
static const struct said values[] = { AS_SAID(arg_a),    AS_SAID(cpu_a), AS_SAID(apart_ab),
				      AS_SAID(mixed_ab), AS_SAID(arg_c), AS_SAID(mixed_abc) };

/* With `last` for the event that is joined last. */
SAID(last_cpu, "x.cpu", 1, c->cpu)
SAID(last_arg, "x.Arg(4)", 1, c->arg[4])
SAID(since_a, "x.time - a.time", 1, c->time - a->time)
static const struct said operands[] = { AS_SAID(last_cpu), AS_SAID(last_arg), AS_SAID(since_a) };

struct shape {
	unsigned sources;
	enum { ROWS, GROUPS, INTO, INTO_GROUPS, INTO_NONE, INTO_VALUE, SHAPES } form;
	/* conditions: of a; after the first join; at the end */
	const struct said *keys[2], *before, *between, *behind;
	const struct said *columns[2], *operand;
	uint64_t within[2];
	enum kind aggregate;
};

static const struct said *any_of(const struct said *list, size_t count, unsigned sources)
{
	const struct said *s;
	do
		s = &list[below((unsigned)count)];
	while (s->sources > sources);
	return s;
}
#define ANY_OF(list, sources) any_of(list, sizeof(list) / sizeof((list)[0]), sources)

static void random_shape(struct shape *s)
{
	static const uint64_t apart[] = { 0, 30, 300, 1200, INT64_MAX };
	memset(s, 0, sizeof(*s));
	s->form = below(SHAPES);
	s->sources = s->form < INTO ? 3 : 2 + below(2);
	s->keys[0] = ANY_OF(first_keys, 2);
	s->keys[1] = ANY_OF(second_keys, 3);
	s->within[0] = apart[below(5)];
	s->within[1] = apart[below(5)];
	s->before = ANY_OF(conditions, 1);
	s->between = ANY_OF(conditions, s->sources == 3 ? 2 : 1);
	s->behind = s->form < INTO ? ANY_OF(conditions, 3) : &conditions[0];
	unsigned left = s->form < INTO ? 3 : s->sources - 1; /* what a row has beside its group */
	for (unsigned i = 0; i < 2; i++)
		s->columns[i] = ANY_OF(values, left);
	s->operand = ANY_OF(operands, 1);
	static const enum kind kinds[] = { COUNT, SUM, MIN, MAX, FIRST, LAST, AVERAGE, STDDEV };
	s->aggregate = kinds[below(8)];
}

/* --- as text --- */

static void print_aggregate(FILE *out, const char *of, const struct shape *s)
{
	fprintf(out, "%s.%s(", of, aggregate_names[s->aggregate]);
	if (s->aggregate != COUNT)
		fprintf(out, "x => %s", s->operand->text);
	fputc(')', out);
}

static void print_result(FILE *out, const struct shape *s)
{
	static const char *const none[] = { "g.Count() == 0",
					    "!g.Any(x => x.cpu != 0 && x.time > a.time)" };
	const char *k = s->columns[0]->text, *v = s->columns[1]->text;
	switch (s->form) {
	case ROWS: fprintf(out, " select new { k = %s, v = %s }", k, v); return;
	case GROUPS:
		fprintf(out,
			" group new { a, c } by %s into g select new { k = g.Key, n = g.Count(), m "
			"= g.Sum(x => x.c.cpu + x.a.cpu) }",
			k);
		return;
	case INTO:
		fprintf(out,
			" where g.Count() != 1 select new { k = %s, v = %s, n = g.Count(), r = ", k,
			v);
		print_aggregate(out, "g", s);
		fprintf(out, ", later = g.Count(x => x.time > a.time) }");
		return;
	case INTO_GROUPS:
		fprintf(out,
			" let n = g.Count() group n by %s into h select new { k = h.Key, rows = "
			"h.Count(), n = h.Sum(), most = h.Max(), first = h.First(), last = "
			"h.Last() }",
			k);
		return;
	case INTO_NONE:
		fprintf(out, " where %s select new { k = %s, v = %s }", none[s->aggregate & 1], k,
			v);
		return;
	default: fputs(" select g.Count()).Max()", out); return;
	}
}

static char *text_of_shape(const struct shape *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool into = s->form >= INTO;
	assert_non_null(out);
	fprintf(out,
		"%sfrom a in cluster.Function(\"a!b\") where %s join b in "
		"cluster.Function(\"c!d\") on %s within %llu",
		s->form == INTO_VALUE ? "(" : "", s->before->text, s->keys[0]->text,
		(unsigned long long)s->within[0]);
	if (s->sources == 3)
		fprintf(out, " where %s join c in cluster.Function(\"e!f\") on %s within %llu",
			s->between->text, s->keys[1]->text, (unsigned long long)s->within[1]);
	if (into)
		fprintf(out, " into g where %s", s->between->text);
	else
		fprintf(out, " where %s", s->behind->text);
	print_result(out, s);
	fclose(out);
	return text;
}

/* --- the reference --- */

struct row {
	struct cell cells[CELLS];
	uint64_t first, last; /* INTO_GROUPS: times of the rows that the last two cells are of */
};
static struct {
	struct row rows[MAX_ROWS];
	size_t count;
} want, is;

#define APART(a, b) ((a) > (b) ? (a) - (b) : (b) - (a))
static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool first_pairs(const struct shape *s, event a, event b)
{
	return s->before->means(a, b, NULL) && s->keys[0]->means(a, b, NULL) &&
	       APART(a->time, b->time) <= s->within[0];
}

static bool second_pairs(const struct shape *s, event a, event b, event c)
{
	return s->keys[1]->means(a, b, c) &&
	       APART(later(a->time, b->time), c->time) <= s->within[1];
}

static struct cell *add_row(void)
{
	assert_true(want.count < MAX_ROWS);
	memset(&want.rows[want.count], 0, sizeof(want.rows[0]));
	return want.rows[want.count++].cells;
}

/* All rows of the two joins, without groups. */
static void refer_rows(const struct shape *s)
{
	for (unsigned i = 0; i < event_count[0]; i++)
		for (unsigned j = 0; j < event_count[1]; j++)
			for (unsigned k = 0; k < event_count[2]; k++) {
				event a = &events[0][i], b = &events[1][j], c = &events[2][k];
				if (!first_pairs(s, a, b) || !s->between->means(a, b, NULL) ||
				    !second_pairs(s, a, b, c) || !s->behind->means(a, b, c))
					continue;
				struct cell *cells = add_row();
				cells[0] = integer_cell(s->columns[0]->means(a, b, c));
				cells[1] = integer_cell(
					s->form == GROUPS ? 1 : s->columns[1]->means(a, b, c));
				cells[2] = s->form == GROUPS ? integer_cell(c->cpu + a->cpu)
							     : (struct cell){ NONE };
			}
}

/* Of equal times the larger value is the first, and the last. */
static void merge_ends(struct row *to, const struct row *from)
{
	if (from->first < to->first ||
	    (from->first == to->first && from->cells[4].integer > to->cells[4].integer)) {
		to->first = from->first;
		to->cells[4] = from->cells[4];
	}
	if (from->last > to->last ||
	    (from->last == to->last && from->cells[5].integer > to->cells[5].integer)) {
		to->last = from->last;
		to->cells[5] = from->cells[5];
	}
}

/* Rows of one key become one: the second cell is added up, the third too; for INTO_GROUPS the
 * fourth is the greatest, and the others are the first and the last. */
static void merge_rows(void)
{
	size_t count = 0;
	for (size_t r = 0; r < want.count; r++) {
		size_t k = 0;
		while (k < count && want.rows[k].cells[0].integer != want.rows[r].cells[0].integer)
			k++;
		struct cell *to = want.rows[k].cells, *from = want.rows[r].cells;
		if (k == count) {
			want.rows[count++] = want.rows[r];
			continue;
		}
		to[1].integer += from[1].integer;
		to[2].integer += from[2].integer;
		to[3].integer = from[3].integer > to[3].integer ? from[3].integer : to[3].integer;
		merge_ends(&want.rows[k], &want.rows[r]);
	}
	want.count = count;
}

/* One row of a join that makes groups: a, b (NULL: it is of a alone) and what is joined to them. */
static void refer_group(const struct shape *s, event a, event b)
{
	static struct sample samples[MAX_EVENTS];
	size_t count = 0, since = 0, settling = 0;
	unsigned last = s->sources - 1;
	if (!s->between->means(a, b, NULL))
		return;
	for (unsigned k = 0; k < event_count[last]; k++) {
		event c = &events[last][k];
		if (!(b ? second_pairs(s, a, b, c) : first_pairs(s, a, c)))
			continue;
		samples[count++] =
			(struct sample){ s->aggregate == COUNT ? 0 : s->operand->means(a, b, c),
					 c->time };
		since += c->time > a->time;
		settling += c->cpu && c->time > a->time;
	}
	if ((s->form == INTO && count == 1) ||
	    (s->form == INTO_NONE && (s->aggregate & 1 ? settling : count)))
		return;
	struct cell *cells = add_row();
	struct cell n = integer_cell((int64_t)count);
	cells[0] = s->form == INTO_VALUE ? n : integer_cell(s->columns[0]->means(a, b, NULL));
	if (s->form == INTO || s->form == INTO_NONE)
		cells[1] = integer_cell(s->columns[1]->means(a, b, NULL));
	if (s->form == INTO) {
		cells[2] = n;
		cells[3] = aggregate_samples(s->aggregate, 50, samples, count);
		cells[4] = integer_cell((int64_t)since);
	} else if (s->form == INTO_GROUPS) {
		struct row *row = &want.rows[want.count - 1];
		row->first = row->last = b ? later(a->time, b->time) : a->time;
		cells[1] = integer_cell(1);
		cells[2] = cells[3] = cells[4] = cells[5] = n;
	}
}

static void refer_groups(const struct shape *s)
{
	for (unsigned i = 0; i < event_count[0]; i++) {
		event a = &events[0][i];
		if (s->sources == 2 && s->before->means(a, NULL, NULL))
			refer_group(s, a, NULL);
		for (unsigned j = 0; s->sources == 3 && j < event_count[1]; j++)
			if (first_pairs(s, a, &events[1][j]))
				refer_group(s, a, &events[1][j]);
	}
}

static void refer(const struct shape *s)
{
	want.count = 0;
	if (s->form < INTO)
		refer_rows(s);
	else
		refer_groups(s);
	if (s->form == GROUPS || s->form == INTO_GROUPS)
		merge_rows();
	if (s->form != INTO_VALUE)
		return;
	struct cell most = { NONE };
	for (size_t r = 0; r < want.count; r++)
		most = most.kind == NONE || want.rows[r].cells[0].integer > most.integer
			       ? want.rows[r].cells[0]
			       : most;
	want.count = 0;
	add_row()[0] = most;
}

/* --- the query itself --- */

static struct fay_pairs *joined;
static struct fay_aggregator *aggregator;
static const struct fay_plan *plan;
static struct fay_schema schema, result_schema;

static void take_result(const struct fay_schema *of, const uint8_t *row)
{
	assert_true(is.count < MAX_ROWS);
	struct cell *cells = is.rows[is.count++].cells;
	memset(cells, 0, sizeof(is.rows[0].cells));
	assert_true(plan->column_count <= CELLS);
	for (uint32_t c = 0; c < plan->column_count; c++)
		cells[c] = cell_of(plan, of, row, c);
}

static void on_row(void *context, uint32_t state, const uint8_t *row)
{
	(void)context, (void)state;
	take_result(&schema, row);
}

static void on_pair(void *context, const uint8_t *row)
{
	struct fay_error error;
	(void)context;
	assert_int_equal(fay_aggregator_take_row(aggregator, 0, row, &error), 0);
}

static void on_source(uint64_t state, const uint8_t *row)
{
	fay_pairs_add(joined, (unsigned)state, row);
}

/* All streams' events, in any interleaving. */
static void run_probes(struct running *r)
{
	probe_function *const probes[3] = { r->probe, r->right, r->third };
	unsigned at[3] = { 0 }, left = 0;
	for (unsigned s = 0; s < plan->source_count; s++)
		left += event_count[s];
	while (left) {
		unsigned s = below(plan->source_count);
		if (at[s] == event_count[s])
			continue;
		probes[s](&events[s][at[s]++], r->local, NULL);
		left--;
	}
}

static void run(struct running *r)
{
	struct fay_error error;
	struct fay_result result, finished;
	struct fay_pairs_counts counts;
	plan = r->plan;
	is.count = 0;
	fay_plan_schema(plan, &schema);
	fay_plan_result_schema(plan, &result_schema);
	assert_int_equal(fay_pairs_create(plan, on_pair, NULL, &joined, &error), 0);
	assert_int_equal(fay_aggregator_create(&schema, &aggregator, &error), 0);
	fay_aggregator_on_row(aggregator, on_row, NULL);
	run_probes(r);
	fay_pairs_advance(joined, UINT64_MAX);
	assert_int_equal(fay_aggregator_snapshot(aggregator, 0, &result, &error), 0);
	finished = result;
	if (plan->finishes)
		assert_int_equal(fay_plan_finish(plan, &result, NULL, NULL, &finished, &error), 0);
	for (size_t i = 0; i < finished.row_count; i++)
		take_result(&result_schema, finished.rows + i * finished.row_size);
	if (plan->finishes)
		fay_result_deinit(&finished);
	fay_result_deinit(&result);
	fay_pairs_counts(joined, &counts);
	assert_int_equal(counts.joins[0].evicted[0] + counts.joins[0].late[0] +
				 counts.joins[1].evicted[0] + counts.joins[1].late[0],
			 0);
	fay_aggregator_destroy(aggregator);
	fay_pairs_destroy(joined);
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *x = left, *y = right;
	int c = 0;
	for (unsigned i = 0; i < CELLS && !c; i++)
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

static void random_streams(void)
{
	for (unsigned s = 0; s < 3; s++) {
		event_count[s] = below(MAX_EVENTS + 1);
		for (unsigned i = 0; i < event_count[s]; i++)
			random_event(&events[s][i]);
	}
}

static unsigned queries = 250;

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
		random_shape(&shape);
		char *text = text_of_shape(&shape);
		start(&r, text);
		on_emit = on_source;
		for (unsigned i = 0; i < 4; i++) {
			random_streams();
			run(&r);
			refer(&shape);
			compare(text);
			rows += want.count;
		}
		stop(&r);
		free(text);
	}
	print_message("%u pairs of a query and its streams, %zu rows\n", queries * 4, rows);
	assert_true(rows > queries);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_joins) };
	if (argc > 1)
		queries = (unsigned)atoi(argv[1]);
	return prepare_jit() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
