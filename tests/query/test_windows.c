/* SPDX-License-Identifier: MIT */
/*
 * Windows of time: the generated probe runs over known events, its rows go through
 * fay_plan_window() and fay_plan_finish() for every window, and each result is compared with what
 * this test counts among the events of that window.
 */
#include "running.h"
#include "tests/query/reference/trees.h"

#include "fay/aggregator.h"

#define EVENTS 3000
#define MS UINT64_C(1000000)

static struct fay_event events[EVENTS];

/* Bursts and pauses over some two seconds, not in order; some exactly on a boundary. */
static int make_events(void **unused)
{
	random_state = 0x5eed;
	for (unsigned i = 0; i < EVENTS; i++) {
		struct fay_event *e = &events[i];
		uint64_t x = random_word();
		e->time = NOW + (x % 10 < 7 ? x / 10 % 400 * MS : x / 10 % (2000 * MS));
		e->arg[0] = random_word() % 5;
		e->arg[1] = random_word() % 1000;
	}
	return prepare_jit();
}

/* Merged rows with their schema, as the aggregator gives them. */
struct merged {
	struct running running;
	struct fay_result rows;
	struct fay_schema schema;
	struct fay_schema_state state;
	struct fay_schema_column columns[16];
};

/* By the start of the pane, as the aggregator's rows are. */
static int compare_panes(const void *left, const void *right, void *offset)
{
	uint64_t a = word(left, *(uint32_t *)offset), b = word(right, *(uint32_t *)offset);
	return (a > b) - (a < b);
}

static void run_query(struct merged *m, const char *text)
{
	memset(m, 0, sizeof(*m));
	start(&m->running, text);
	const struct fay_spec_state *s = &m->running.plan->spec.states[0];
	for (unsigned i = 0; i < EVENTS; i++)
		m->running.probe(&events[i], m->running.local, NULL);
	m->rows.row_size = s->row_size;
	m->rows.rows = calloc(s->rows + handed_count + 1, s->row_size);
	for (size_t i = 0; i < handed_count; i++)
		memcpy(m->rows.rows + m->rows.row_count++ * s->row_size,
		       handed_on + i * s->row_size, s->row_size);
	const unsigned char *rows = m->running.local + sizeof(struct fay_table_header);
	for (uint32_t i = 0; i < s->rows; i++)
		if (word(rows + i * s->row_size, 0))
			memcpy(m->rows.rows + m->rows.row_count++ * s->row_size,
			       rows + i * s->row_size, s->row_size);
	m->state = (struct fay_schema_state){ .name = s->name,
					      .kind = (uint16_t)s->kind,
					      .scope = (uint16_t)s->scope,
					      .rows = s->rows,
					      .row_size = s->row_size,
					      .keys = s->keys,
					      .values = s->values };
	for (uint32_t i = 0; i < m->running.plan->spec.column_count; i++) {
		const struct fay_spec_column *c = &m->running.plan->spec.columns[i];
		m->columns[i] = (struct fay_schema_column){ .name = c->name,
							    .type = (uint16_t)c->type,
							    .merge = (uint16_t)c->merge,
							    .offset = c->offset,
							    .size = c->size };
	}
	m->schema = (struct fay_schema){ .local_size = m->running.plan->spec.local_size,
					 .states = &m->state,
					 .state_count = 1,
					 .columns = m->columns,
					 .column_count = m->running.plan->spec.column_count };
	qsort_r(m->rows.rows, m->rows.row_count, m->rows.row_size, compare_panes,
		&m->columns[0].offset);
}

static void end_query(struct merged *m)
{
	free(m->rows.rows);
	stop(&m->running);
}

static void finish(struct merged *m, uint64_t end, struct fay_result *result)
{
	struct fay_result window;
	struct fay_error error = { 0 };
	if (fay_plan_window(m->running.plan, &m->schema, &m->rows, end, &window, &error) ||
	    fay_plan_finish(m->running.plan, &window, NULL, NULL, result, &error))
		fail_msg("%s", error.message);
	fay_result_deinit(&window);
}

/* Column `index` of a finished row. */
static int64_t value(const struct merged *m, const struct fay_result *result, size_t row,
		     uint32_t index)
{
	const struct fay_plan_column *c = &m->running.plan->columns[index];
	const struct fay_spec_state *s = &m->running.plan->spec.states[0];
	uint32_t offset =
		c->source == FAY_PLAN_COMPUTED
			? c->offset + 8
			: m->columns[c->index + (c->source == FAY_PLAN_VALUE ? s->keys : 0u)]
				  .offset;
	return word(result->rows + row * result->row_size, offset);
}

static bool in_window(const struct fay_event *e, uint64_t end, uint64_t width)
{
	return e->time >= end - width && e->time < end;
}

static uint64_t count_in(uint64_t end, uint64_t width, int64_t key)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < EVENTS; i++)
		n += in_window(&events[i], end, width) &&
		     (key < 0 || events[i].arg[0] == (uint64_t)key);
	return n;
}

static void check_counts(const char *text, uint64_t width, uint64_t step)
{
	struct merged m;
	uint64_t total = 0;
	run_query(&m, text);
	assert_int_equal(m.running.plan->window_width, width);
	assert_int_equal(m.running.plan->window_step, step);
	for (uint64_t end = NOW + step; end < NOW + 2000 * MS + width + step; end += step) {
		struct fay_result result;
		finish(&m, end, &result);
		assert_int_equal(result.row_count, 1); /* an empty window, too, has its zero */
		assert_int_equal(value(&m, &result, 0, 0), end - width);
		assert_int_equal(value(&m, &result, 0, 1), count_in(end, width, -1));
		total += (uint64_t)value(&m, &result, 0, 1);
		fay_result_deinit(&result);
	}
	assert_int_equal(total, EVENTS * (width / step));
	end_query(&m);
}

static void one_value(void **unused)
{
	check_counts("cluster.Function(\"a!b\").Tumbling(100ms).Count()", 100 * MS, 100 * MS);
	check_counts("cluster.Function(\"a!b\").Sliding(500ms, 100ms).Count()", 500 * MS, 100 * MS);
	check_counts(
		"cluster.Function(\"a!b\").Where(x => x.Arg(0) < 9).Sliding(300ms, 100ms).Count()",
		300 * MS, 100 * MS);
}

/* Groups, ordered and cut in each window by itself. */
static void groups(void **unused)
{
	struct merged m;
	run_query(&m, "from x in cluster.Function(\"a!b\").Sliding(400ms, 200ms) group x by "
		      "x.Arg(0) into g\n"
		      "orderby g.Count() descending, g.Key select new { g.Key, n = g.Count(), "
		      "twice = 2 * g.Sum(x => x.Arg(1)) } take 3");
	for (uint64_t end = NOW + 200 * MS; end < NOW + 2600 * MS; end += 200 * MS) {
		struct fay_result result;
		uint64_t groups = 0, last = UINT64_MAX;
		finish(&m, end, &result);
		for (int64_t key = 0; key < 5; key++)
			groups += count_in(end, 400 * MS, key) != 0;
		assert_int_equal(result.row_count, groups < 3 ? groups : 3);
		for (size_t r = 0; r < result.row_count; r++) {
			int64_t key = value(&m, &result, r, 1), sum = 0;
			uint64_t n = (uint64_t)value(&m, &result, r, 2);
			for (unsigned i = 0; i < EVENTS; i++)
				if (in_window(&events[i], end, 400 * MS) &&
				    events[i].arg[0] == (uint64_t)key)
					sum += (int64_t)events[i].arg[1];
			assert_int_equal(value(&m, &result, r, 0), end - 400 * MS);
			assert_int_equal(n, count_in(end, 400 * MS, key));
			assert_int_equal(value(&m, &result, r, 3), 2 * sum);
			assert_true(n <= last);
			last = n;
		}
		for (int64_t key = 0; key < 5 && groups > 3;
		     key++) { /* who is not shown has no more */
			bool shown = false;
			for (size_t r = 0; r < result.row_count; r++)
				shown |= value(&m, &result, r, 1) == key;
			assert_true(shown || count_in(end, 400 * MS, key) <= last);
		}
		fay_result_deinit(&result);
	}
	end_query(&m);
}

/* An aggregate over each window's groups. */
static void folded(void **unused)
{
	struct merged m;
	run_query(&m, "cluster.Function(\"a!b\").Tumbling(50ms).GroupBy(x => x.Arg(0)).Select(g => "
		      "g.Count()).Max()");
	for (uint64_t end = NOW + 50 * MS; end < NOW + 2100 * MS; end += 50 * MS) {
		struct fay_result result;
		uint64_t most = 0;
		finish(&m, end, &result);
		for (int64_t key = 0; key < 5; key++)
			most = count_in(end, 50 * MS, key) > most ? count_in(end, 50 * MS, key)
								  : most;
		/* of a window without events, too: it has no value */
		assert_int_equal(result.row_count, 1);
		assert_int_equal(value(&m, &result, 0, 0), end - 50 * MS);
		assert_int_equal(value(&m, &result, 0, 1), most);
		fay_result_deinit(&result);
	}
	end_query(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_value), cmocka_unit_test(groups),
					    cmocka_unit_test(folded) };
	return cmocka_run_group_tests_name("query windows", tests, make_events, NULL);
}
