/* SPDX-License-Identifier: MIT */
/*
 * What the root makes of merged rows, and the aggregates that only queries with a root have: probes
 * run over known events by LLVM's JIT, their table's rows are handed to fay_plan_finish(), and the
 * result is compared with what this test computes from the same events.
 */
#include "finished.h"
#include "tests/query/reference/trees.h"

/* --- what this test knows of the groups by arg[0] --- */

struct group {
	uint64_t key, count;
	int64_t sum;
	double mean, deviation, median;
	uint64_t distinct, first, last;
	bool any, all;
};

static int compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static struct group reference(uint64_t key)
{
	static uint64_t values[EVENTS];
	struct group g = { .key = key, .all = true };
	long double sum = 0, squares = 0;
	bool seen[100] = { false };
	for (unsigned i = 0; i < EVENTS; i++) {
		const struct fay_event *e = &events[i];
		if (e->arg[0] != key)
			continue;
		values[g.count] = e->arg[1];
		g.first = g.count++ ? g.first : e->arg[1];
		g.last = e->arg[1];
		g.sum += (int64_t)e->arg[1];
		sum += (long double)(int64_t)e->arg[3];
		g.distinct += !seen[e->arg[2]];
		seen[e->arg[2]] = true;
		g.any |= e->arg[2] == 17;
		g.all &= e->arg[2] != 17;
	}
	for (unsigned i = 0; i < EVENTS; i++) {
		long double d = (long double)(int64_t)events[i].arg[3] - sum / (long double)g.count;
		squares += events[i].arg[0] == key ? d * d : 0;
	}
	qsort(values, g.count, sizeof(values[0]), compare_words);
	g.mean = (double)g.sum / (double)g.count;
	g.deviation = (double)sqrtl(squares / (long double)g.count);
	g.median = (double)values[(g.count - 1) / 2];
	return g;
}

static void near(double got, double want, double tolerance, const char *what)
{
	if (!(fabs(got - want) <= tolerance * fabs(want) + 1e-9))
		fail_msg("%s: %.17g, expected %.17g", what, got, want);
}

static void aggregates(void **state)
{
	struct answer a;
	run_query(&a,
		  "from x in cluster.Function(\"a!b\") group x by x.Arg(0) into g orderby g.Key "
		  "select new { g.Key, n = g.Count(), "
		  "mean = 1.0 * g.Sum(x => x.Arg(1)) / g.Count(), sd = g.StdDev(x => x.Arg(3)), "
		  "distinct = g.DistinctCount(x => x.Arg(2)), first = g.First(x => x.Arg(1)), last "
		  "= g.Last(x => x.Arg(1)), "
		  "any = g.Any(x => x.Arg(2) == 17), all = g.All(x => x.Arg(2) != 17), half = "
		  "(g.Count() + 1) / 2 }");
	assert_int_equal(a.result.row_count, KEYS);
	for (size_t r = 0; r < KEYS; r++) {
		struct group g = reference(r);
		assert_true(get(&a, r, "Key") == (double)r && get(&a, r, "n") == (double)g.count);
		near(get(&a, r, "mean"), g.mean, 1e-12, "mean");
		near(get(&a, r, "sd"), g.deviation, 1e-9, "StdDev");
		near(get(&a, r, "distinct"), (double)g.distinct, 0.1, "DistinctCount");
		assert_true(get(&a, r, "first") == (double)g.first &&
			    get(&a, r, "last") == (double)g.last);
		assert_true(get(&a, r, "any") == g.any && get(&a, r, "all") == g.all);
		assert_true(get(&a, r, "half") == (double)((g.count + 1) / 2));
	}
	end_query(&a);
	run_query(&a, "from x in cluster.Function(\"a!b\") group x by x.Arg(0) into g orderby "
		      "g.Key descending "
		      "select new { g.Key, median = g.Quantile(0.5, x => x.Arg(1)) }");
	for (size_t r = 0; r < KEYS; r++)
		near(get(&a, r, "median"), reference(KEYS - 1 - r).median, 0.04, "Quantile");
	end_query(&a);
	run_query(&a, "cluster.Function(\"a!b\").Where(x => x.Arg(2) > 1000).Quantile(0.9, x => "
		      "x.Arg(1))");
	assert_true(isnan(get(&a, 0, "Quantile")));
	end_query(&a);
}

/* Of the values 0 to 50: parts like 0.58 are no exact numbers, and 0.58 * 50 is below 29 in
 * doubles. */
static void exact_ranks(void **state)
{
	static const unsigned percents[] = { 1, 14, 28, 56, 57, 58 };
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		struct answer a;
		char text[200];
		double exact = percents[i] * 50 / 100;
		snprintf(text, sizeof(text),
			 "cluster.Function(\"a!b\").Where(x => x.time <= "
			 "Now.AddMilliseconds(0.05)).Quantile(0.%02u, x => (x.time - Now) / 1us)",
			 percents[i]);
		run_query(&a, text);
		assert_true(fabs(get(&a, 0, "Quantile") - exact) <= exact / 32);
		end_query(&a);
	}
}

/* A small deviation about a large mean keeps its digits. */
static void exact_deviation(void **state)
{
	struct answer a;
	double mean = 0, squares = 0;
	run_query(&a, "cluster.Function(\"a!b\").StdDev(x => x.Arg(2) + 4000000000000000)");
	for (unsigned i = 0; i < EVENTS; i++)
		mean += (double)events[i].arg[2] / EVENTS;
	for (unsigned i = 0; i < EVENTS; i++)
		squares += ((double)events[i].arg[2] - mean) * ((double)events[i].arg[2] - mean);
	near(get(&a, 0, "StdDev"), sqrt(squares / EVENTS), 1e-9, "StdDev");
	end_query(&a);
}

/* Sums of a hundred and more values near both ends of 64 bits, and of some that only their
 * neighbours' halves tell apart. */
static void averages_do_not_wrap(void **state)
{
	struct answer a;
	double sum = 0;
	for (unsigned i = 0; i < EVENTS; i++)
		sum += (double)events[i].arg[1];
	run_query(&a, "cluster.Function(\"a!b\").Average(x => 9223372036854770000 - x.Arg(1))");
	near(get(&a, 0, "Average"), 9223372036854770000.0 - sum / EVENTS, 1e-15, "upwards");
	end_query(&a);
	run_query(&a,
		  "cluster.Function(\"a!b\").GroupBy(x => 1).Select(g => new { low = g.Average(x "
		  "=> x.Arg(1) - 9223372036854770000), small = g.Average(x => -1 - x.Arg(1)), "
		  "times = g.Average(x => x.Arg(1) + 1790000000000000000) })");
	near(get(&a, 0, "low"), sum / EVENTS - 9223372036854770000.0, 1e-15, "downwards");
	near(get(&a, 0, "small"), -1 - sum / EVENTS, 1e-12, "below zero");
	near(get(&a, 0, "times"), sum / EVENTS + 1790000000000000000.0, 1e-15, "times");
	end_query(&a);
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.Arg(0)).GroupBy(g => 1).Select(h "
		      "=> h.Average(g => 9223372036854770000 - g.Count()))");
	near(get(&a, 0, "Average"), 9223372036854770000.0 - (double)EVENTS / KEYS, 1e-15,
	     "of groups");
	end_query(&a);
}

static int by_count(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
				    : (x->key > y->key) - (x->key < y->key);
}

static void order_and_conditions(void **state)
{
	struct group groups[KEYS];
	struct answer a;
	size_t count = 0;
	for (uint64_t key = 0; key < KEYS; key++) {
		struct group g = reference(key);
		if (g.count >= 70 && g.mean > 1.5)
			groups[count++] = g;
	}
	assert_true(count > 10 && count < KEYS);
	qsort(groups, count, sizeof(groups[0]), by_count);
	run_query(&a, "from x in cluster.Function(\"a!b\") group x by x.Arg(0) into g let n = "
		      "g.Count() where n >= 70 && "
		      "g.Average(x => x.Arg(1)) > 1.5 orderby n descending, g.Key select new { "
		      "g.Key, n } skip 2 take 6");
	assert_int_equal(a.result.row_count, 6);
	for (size_t r = 0; r < 6; r++)
		assert_true(get(&a, r, "Key") == (double)groups[r + 2].key &&
			    get(&a, r, "n") == (double)groups[r + 2].count);
	end_query(&a);
	/* Of the same rows the number, the largest and the mean. */
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.Arg(0)).Where(g => g.Count() >= 70 "
		      "&& g.Average(x => x.Arg(1)) > 1.5).Count() * 10");
	assert_true(a.result.row_count == 1 && get(&a, 0, "Count") == 10.0 * (double)count);
	end_query(&a);
	run_query(&a,
		  "cluster.Function(\"a!b\").GroupBy(x => x.Arg(0)).Select(g => g.Count()).Max()");
	assert_true(get(&a, 0, "Max") == (double)reference(0).count);
	end_query(&a);
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.Arg(0)).Select(g => "
		      "g.Count()).Average()");
	assert_true(get(&a, 0, "Average") == (double)EVENTS / KEYS);
	end_query(&a);
}

static void distinct_rows(void **state)
{
	struct answer a;
	run_query(&a, "cluster.Function(\"a!b\").Select(x => new { x.tid, odd = x.Arg(2) & 1 "
		      "}).Distinct().OrderByDescending(x => x.tid).ThenBy(x => x.odd)");
	assert_int_equal(a.result.row_count, 14);
	for (size_t r = 0; r < 14; r++)
		assert_true(get(&a, r, "tid") == (double)(6 - r / 2) &&
			    get(&a, r, "odd") == (double)(r % 2));
	end_query(&a);
	/* Groups whose counts are the same are one row. */
	bool seen[EVENTS + 1] = { false };
	size_t different = 0;
	for (uint64_t key = 0; key < KEYS; key++) {
		uint64_t n = reference(key).count;
		different += !seen[n];
		seen[n] = true;
	}
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.Arg(0)).Select(g => "
		      "g.Count()).Distinct()");
	assert_true(different < KEYS);
	assert_int_equal(a.result.row_count, different);
	end_query(&a);
}

/* Rows of events, ordered: also when they are pruned now and then. */
static void ordered_events(void **state)
{
	struct answer a;
	static uint64_t sizes[EVENTS];
	size_t count = 0;
	for (unsigned i = 0; i < EVENTS; i++)
		if (events[i].tid != 3)
			sizes[count++] = events[i].arg[1];
	qsort(sizes, count, sizeof(sizes[0]), compare_words);
	run_query(&a, "from x in cluster.Function(\"a!b\") where x.tid != 3 orderby x.Arg(1) "
		      "descending take 25 select new { x.comm, size = x.Arg(1) }");
	assert_int_equal(a.result.row_count, 25);
	for (size_t r = 0; r < 25; r++)
		assert_true(get(&a, r, "size") == (double)sizes[count - 1 - r]);
	const struct fay_plan *plan = a.running.plan;
	struct fay_result kept = { .row_size = plan->spec.states[0].row_size }, again;
	struct fay_error error;
	kept.rows = malloc((handed_count + 1) * kept.row_size);
	for (size_t i = 0; i < handed_count; i++) {
		memcpy(kept.rows + kept.row_count++ * kept.row_size, handed_on + i * kept.row_size,
		       kept.row_size);
		if (i % 100 == 99 && fay_plan_prune(plan, &kept, name_of, NULL)) {
			assert_int_equal(kept.row_count, 25);
			kept.rows = realloc(kept.rows, (handed_count + 1) * kept.row_size);
		}
	}
	assert_true(kept.row_count < 125);
	assert_int_equal(fay_plan_finish(plan, &kept, name_of, NULL, &again, &error), 0);
	assert_int_equal(again.row_count, 25);
	assert_memory_equal(again.rows, a.result.rows, 25 * again.row_size);
	fay_result_deinit(&again);
	fay_result_deinit(&kept);
	end_query(&a);
}

/* Nothing is computed of no value, and it comes first in order. */
static void no_value(void **state)
{
	struct answer a;
	run_query(&a, "from x in cluster.Function(\"a!b\") group x by x.tid into g let m = "
		      "g.Where(x => x.tid > 2).Max(x => x.Arg(2)) "
		      "orderby m, g.Key select new { g.Key, m, twice = m * 2, small = m < 1000, "
		      "large = !(m < 1000) }");
	assert_int_equal(a.result.row_count, 7);
	for (size_t r = 0; r < 3; r++) {
		assert_true(get(&a, r, "Key") == (double)r && isnan(get(&a, r, "m")) &&
			    isnan(get(&a, r, "twice")));
		assert_true(get(&a, r, "small") == 0 && get(&a, r, "large") == 1);
	}
	for (size_t r = 3; r < 7; r++)
		assert_true(get(&a, r, "twice") == 2 * get(&a, r, "m") && get(&a, r, "small") == 1);
	end_query(&a);
}

/* Of groups that give now a real number, now an integer, each is added. */
static void mixed_sum(void **state)
{
	struct answer a;
	run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => x.tid).Select(g => g.Key > 3 ? 0.5 * "
		      "g.Min(x => x.tid) : g.Min(x => x.tid)).Sum()");
	assert_true(get(&a, 0, "Sum") == 0 + 1 + 2 + 3 + 2 + 2.5 + 3);
	end_query(&a);
}

/* A number beyond all others is no value: JSON could not say it. */
static void infinite(void **state)
{
	struct answer a;
	char large[309] = { 0 }, text[512];
	run_query(
		&a,
		"from x in cluster.Function(\"a!b\") group x by x.tid into g let a = "
		"9000000000000.0 * g.Count() let b = a * a let c = b * b let d = c * c let e = d * "
		"d "
		"orderby g.Key select new { g.Key, e, f = e * e, g = -e * e, small = e * e < 1 }");
	for (size_t r = 0; r < 7; r++)
		assert_true(get(&a, r, "e") > 1e200 && isnan(get(&a, r, "f")) &&
			    isnan(get(&a, r, "g")) && get(&a, r, "small") == 0);
	end_query(&a);
	memset(large, '9', sizeof(large) - 1);
	snprintf(text, sizeof(text),
		 "cluster.Function(\"a!b\").GroupBy(x => x.tid).Select(g => %s.0 + 0 * "
		 "g.Count()).Sum()",
		 large);
	run_query(&a, text);
	assert_true(isnan(get(&a, 0, "Sum")));
	end_query(&a);
}

/* Names that differ in their first eight bytes, in the others, and in both alike. */
static void distinct_strings(void **state)
{
	for (unsigned form = 0; form < 3; form++) {
		struct answer a;
		for (unsigned i = 0; i < EVENTS; i++)
			snprintf(events[i].comm, sizeof(events[i].comm),
				 form == 0   ? "%07u-worker%.0u"
				 : form == 1 ? "worker--%07u%.0u"
					     : "%07u-%07u",
				 i, form < 2 ? 0 : i);
		run_query(&a, "cluster.Function(\"a!b\").GroupBy(x => 1).Select(g => "
			      "g.DistinctCount(x => x.comm)).Max()");
		assert_true(fabs(get(&a, 0, "Max") - EVENTS) < EVENTS * 3 * 0.023);
		end_query(&a);
	}
	make_events(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aggregates),
		cmocka_unit_test(exact_deviation),
		cmocka_unit_test(averages_do_not_wrap),
		cmocka_unit_test(exact_ranks),
		cmocka_unit_test(order_and_conditions),
		cmocka_unit_test(distinct_rows),
		cmocka_unit_test(ordered_events),
		cmocka_unit_test(no_value),
		cmocka_unit_test(mixed_sum),
		cmocka_unit_test(infinite),
		cmocka_unit_test(distinct_strings),
	};
	return cmocka_run_group_tests(tests, make_events, NULL);
}
