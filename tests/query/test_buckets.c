/* SPDX-License-Identifier: MIT */
/*
 * Histograms and quantiles by group, which probes keep by bucket: what fay_plan_finish() puts
 * together of the rows must be, byte for byte, what the functions of fay/sketch.h make of each
 * group's values, whatever was handed on meanwhile, and the other aggregates what they are of them.
 */
#include "running.h"

#include "fay/aggregator.h"
#include "fay/sketch.h"
#include "tests/query/reference/trees.h"

#include <math.h>
#include <stdio.h>

#define GROUPS 10000u

/* What is known of one group; a histogram by powers of two as fay/probe.h's. */
struct known {
	uint64_t count, sum, part, log2[FAY_HIST_LOG2_BUCKETS];
	int64_t least, most;
	struct fay_quantiles all, some;
};

static struct known *known;

/* How events choose their group, and what their value is. */
struct stream {
	const char *name;
	unsigned events, groups;
	bool skewed; /* half of the events are of group 0, a quarter of group 1 ... */
	int64_t (*value)(void);
};

/* As durations are: within a few powers of two. */
static int64_t some_duration(void)
{
	return (int64_t)(200 + random_word() % 100 + (below(20) ? 0 : random_word() % 100000));
}

static int64_t extreme_value(void)
{
	static const int64_t values[] = { 0, -1, INT64_MIN, INT64_MAX, 1, 15, 16, 17, 31, 32 };
	return values[below(sizeof(values) / sizeof(values[0]))];
}

static int64_t any_value(void)
{
	return (int64_t)random_word() >> below(64);
}

static const struct stream streams[] = {
	{ "10,000 groups", 300000, GROUPS, false, some_duration },
	{ "one group", 20000, 1, false, any_value },
	{ "skewed groups", 100000, 64, true, some_duration },
	{ "extreme values", 20000, 7, false, extreme_value },
	{ "any values", 50000, 100, false, any_value },
	{ "no event", 0, 1, false, any_value },
};

static uint64_t group_of(const struct stream *stream)
{
	unsigned group = 0;
	if (!stream->skewed)
		return below(stream->groups);
	while (group + 1 < stream->groups && below(2))
		group++;
	return group;
}

static void remember(struct known *k, const struct fay_event *e)
{
	int64_t x = (int64_t)e->arg[1];
	k->least = !k->count || x < k->least ? x : k->least;
	k->most = !k->count || x > k->most ? x : k->most;
	k->count++;
	k->sum += (uint64_t)x;
	k->log2[x <= 0 ? 0 : 64 - __builtin_clzll((uint64_t)x)]++;
	fay_quantiles(&k->all, x);
	if (e->arg[2] == 0)
		fay_quantiles(&k->some, x);
	k->part += e->arg[2] == 0;
}

static void take(struct fay_aggregator *aggregator, const unsigned char *rows, size_t count,
		 size_t size)
{
	struct fay_error error = { 0 };
	for (size_t i = 0; i < count; i++)
		if (word(rows + i * size, 0) &&
		    fay_aggregator_take_row(aggregator, 0, rows + i * size, &error))
			fail_msg("%s", error.message);
}

/* The table's last row in use: one of the first 1,024, and of twice as many after each time that it
 * ran full. */
static void check_growth(const struct running *r)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	const unsigned char *rows = r->local + sizeof(struct fay_table_header);
	uint64_t last = (uint64_t)word(r->local, offsetof(struct fay_table_header, last)),
		 grown = flushes < 5 ? 1024u << flushes : 32768;
	assert_int_equal(s->rows, 32768);
	assert_int_equal(last, word(r->local, 0) ? grown - 1 : 0);
	for (uint64_t i = last + 1; i < s->rows; i++)
		assert_int_equal(word(rows + i * s->row_size, 0), 0);
}

/* The events through the probe; rows of full tables and what is left reach the aggregator. */
static void run(struct running *r, const struct stream *stream, struct fay_result *merged)
{
	const struct fay_spec_state *s = &r->plan->spec.states[0];
	struct fay_aggregator *aggregator;
	struct fay_schema schema;
	struct fay_error error = { 0 };
	struct fay_event e;
	memset(&e, 0, sizeof(e));
	fay_plan_schema(r->plan, &schema);
	assert_int_equal(fay_aggregator_create(&schema, &aggregator, &error), 0);
	for (unsigned i = 0; i < stream->events; i++) {
		e.arg[0] = group_of(stream);
		e.arg[1] = (uint64_t)stream->value();
		e.arg[2] = below(3);
		e.time = NOW + i;
		remember(&known[e.arg[0]], &e);
		r->probe(&e, r->local, NULL);
		take(aggregator, handed_on, handed_count, s->row_size);
		handed_count = 0;
	}
	check_growth(r);
	take(aggregator, r->local + sizeof(struct fay_table_header), s->rows, s->row_size);
	assert_int_equal(fay_aggregator_snapshot(aggregator, 0, merged, &error), 0);
	fay_aggregator_destroy(aggregator);
}

/* The first column of the shown rows with this operator, behind the keys. */
static const struct fay_schema_column *column_of(const struct fay_schema *schema,
						 enum fay_merge merge)
{
	for (uint32_t i = 0; i < schema->column_count; i++)
		if (schema->columns[i].merge == merge)
			return &schema->columns[i];
	fail_msg("no column of %d", (int)merge);
	return NULL;
}

typedef void check_function(const struct fay_plan *plan, const struct fay_schema *schema,
			    const uint8_t *row, const struct known *k);

/* Quantiles of a group by the whole sketch. */
static void same_sketch(const struct fay_plan *plan, const uint8_t *row,
			const struct fay_quantiles *sketch)
{
	static const struct fay_schema_column whole = { .merge = FAY_MERGE_QUANTILE,
							.size = sizeof(*sketch) };
	static const struct {
		const char *name;
		double q;
	} shown[] = { { "p0", 0 }, { "p50", 0.5 }, { "p99", 0.99 }, { "p100", 1 } };
	unsigned found = 0;
	for (uint32_t c = 0; c < plan->column_count; c++)
		for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
			double is, want = fay_value_quantile(&whole, (const uint8_t *)sketch,
							     shown[i].q);
			if (strcmp(plan->columns[c].name, shown[i].name))
				continue;
			found++;
			assert_int_equal(word(row, plan->columns[c].offset), !isnan(want));
			memcpy(&is, row + plan->columns[c].offset + 8, sizeof(is));
			assert_true(isnan(want) || is == want);
		}
	assert_int_equal(found, sizeof(shown) / sizeof(shown[0]));
}

/* Each row that was merged, against the sketch of all of the group's events. */
static void same_buckets(const struct fay_plan *plan, const struct fay_result *merged)
{
	struct fay_schema schema;
	fay_plan_schema(plan, &schema);
	for (size_t r = 0; r < merged->row_count; r++) {
		const uint8_t *row = merged->rows + r * merged->row_size;
		const struct known *k = &known[word(row, schema.columns[0].offset)];
		uint64_t bucket = (uint64_t)word(row, schema.columns[1].offset);
		uint64_t count = (uint64_t)word(row, schema.columns[2].offset);
		assert_string_equal(schema.columns[1].name, "bucket");
		assert_int_equal(schema.columns[2].merge, FAY_MERGE_COUNT);
		assert_in_range(bucket, 0, FAY_QUANTILE_BUCKETS - 1);
		assert_int_equal(count, k->all.bucket[bucket]);
	}
}

static uint64_t decoded(const struct fay_schema *schema, const uint8_t *row, enum fay_merge merge)
{
	struct fay_value value;
	assert_true(fay_value_decode(column_of(schema, merge), row, &value));
	return value.kind == FAY_VALUE_I64 ? (uint64_t)value.i64 : value.u64;
}

static void same_quantiles(const struct fay_plan *plan, const struct fay_schema *schema,
			   const uint8_t *row, const struct known *k)
{
	same_sketch(plan, row, &k->all);
	assert_int_equal(decoded(schema, row, FAY_MERGE_COUNT), k->count);
	assert_int_equal(decoded(schema, row, FAY_MERGE_SUM), k->sum);
	assert_int_equal(decoded(schema, row, FAY_MERGE_MIN), k->least);
	assert_int_equal(decoded(schema, row, FAY_MERGE_MAX), k->most);
}

static void check(const char *text, const struct stream *stream, uint32_t row_size,
		  check_function *matches)
{
	struct running r;
	struct fay_result merged, shown;
	struct fay_schema schema;
	struct fay_error error = { 0 };
	size_t groups = 0, at = 0;
	random_state = 0x5eed;
	known = calloc(GROUPS, sizeof(*known));
	assert_non_null(known);
	start(&r, text);
	assert_int_equal(r.plan->spec.states[0].row_size, row_size);
	run(&r, stream, &merged);
	assert_int_equal(fay_plan_finish(r.plan, &merged, NULL, NULL, &shown, &error), 0);
	fay_plan_result_schema(r.plan, &schema);
	if (matches == same_quantiles)
		same_buckets(r.plan, &merged);
	for (unsigned i = 0; i < GROUPS; i++)
		groups += known[i].count != 0;
	assert_int_equal(shown.row_count, groups);
	for (unsigned i = 0; i < GROUPS; i++) {
		const uint8_t *row = shown.rows + at * shown.row_size;
		if (!known[i].count)
			continue;
		assert_int_equal(word(row, schema.columns[0].offset), i);
		matches(r.plan, &schema, row, &known[i]);
		at++;
	}
	print_message("%s: %zu rows of %zu groups\n", stream->name, merged.row_count, groups);
	fay_result_deinit(&merged);
	fay_result_deinit(&shown);
	stop(&r);
	free(known);
}

static void quantiles_are_exact(void **state)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		check("from e in cluster.Function(\"a!b\") group e by e.Arg(0) into g "
		      "select new { g.Key, n = g.Count(), p0 = g.Quantile(0, x => x.Arg(1)), "
		      "p50 = g.Quantile(0.5, x => x.Arg(1)), "
		      "p99 = g.Quantile(0.99, x => x.Arg(1)), "
		      "p100 = g.Quantile(1, x => x.Arg(1)), s = g.Sum(x => x.Arg(1)), "
		      "a = g.Min(x => x.Arg(1)), b = g.Max(x => x.Arg(1)) }",
		      &streams[i], 8 + 2 * 8 + 4 * 8, same_quantiles);
}

static void same_histogram(const struct fay_plan *plan, const struct fay_schema *schema,
			   const uint8_t *row, const struct known *k)
{
	const struct fay_schema_column *c = column_of(schema, FAY_MERGE_HIST_LOG2);
	assert_memory_equal(row + c->offset, k->log2, sizeof(k->log2));
}

static void histograms_are_exact(void **state)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		check("from e in cluster.Function(\"a!b\") group e by e.Arg(0) into g "
		      "select new { g.Key, h = g.Histogram(x => x.Arg(1)) }",
		      &streams[i], 8 + 2 * 8 + 8, same_histogram);
}

/* Quantiles of some of the events: the others are in no bucket, and in the other aggregates. */
static void same_part(const struct fay_plan *plan, const struct fay_schema *schema,
		      const uint8_t *row, const struct known *k)
{
	same_sketch(plan, row, &k->some);
	assert_int_equal(decoded(schema, row, FAY_MERGE_COUNT), k->part);
	assert_int_equal(decoded(schema, row, FAY_MERGE_SUM), k->sum);
}

static void conditions_hold(void **state)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		check("from e in cluster.Function(\"a!b\") group e by e.Arg(0) into g "
		      "select new { g.Key, n = g.Count(x => x.Arg(2) == 0), "
		      "s = g.Sum(x => x.Arg(1)), "
		      "p0 = g.Where(x => x.Arg(2) == 0).Quantile(0, x => x.Arg(1)), "
		      "p50 = g.Where(x => x.Arg(2) == 0).Quantile(0.5, x => x.Arg(1)), "
		      "p99 = g.Where(x => x.Arg(2) == 0).Quantile(0.99, x => x.Arg(1)), "
		      "p100 = g.Where(x => x.Arg(2) == 0).Quantile(1, x => x.Arg(1)) }",
		      &streams[i], 8 + 2 * 8 + 3 * 8, same_part);
}

/* A histogram and quantiles of one value share its buckets, of which the quantiles' are finer. */
static void same_both(const struct fay_plan *plan, const struct fay_schema *schema,
		      const uint8_t *row, const struct known *k)
{
	same_histogram(plan, schema, row, k);
	same_sketch(plan, row, &k->all);
}

static void coarser_buckets_follow(void **state)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		check("from e in cluster.Function(\"a!b\") group e by e.Arg(0) into g "
		      "select new { g.Key, h = g.Histogram(x => x.Arg(1)), "
		      "p0 = g.Quantile(0, x => x.Arg(1)), p50 = g.Quantile(0.5, x => x.Arg(1)), "
		      "p99 = g.Quantile(0.99, x => x.Arg(1)), "
		      "p100 = g.Quantile(1, x => x.Arg(1)) }",
		      &streams[i], 8 + 2 * 8 + 8, same_both);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(quantiles_are_exact),
					    cmocka_unit_test(histograms_are_exact),
					    cmocka_unit_test(conditions_hold),
					    cmocka_unit_test(coarser_buckets_follow) };
	return prepare_jit() || cmocka_run_group_tests(tests, NULL, NULL);
}
