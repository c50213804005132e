/* SPDX-License-Identifier: MIT */
/* The optimiser's rules, one by one: what `fay explain` shows of a query that the rule is about.
 * That results stay the same is for test_codegen.c and test_random.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fay/query.h"

#define NOW 1700000000000000000u

static char *explain(const char *text)
{
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	char *result = NULL;
	size_t size;
	if (fay_query_plan(text, NOW, &plan, &error))
		fail_msg("%s\n%s", text, error.message);
	FILE *memory = open_memstream(&result, &size);
	assert_non_null(memory);
	fay_plan_print(memory, plan);
	fclose(memory);
	fay_plan_destroy(plan);
	return result;
}

/* The one line of the plan that begins so must go on as said; NULL: there must be none. */
static void expect(const char *rule, const char *text, const char *begin, const char *rest)
{
	char *plan = explain(text), *at = strstr(plan, begin);
	if (!rest) {
		if (at)
			fail_msg("%s: %s\n%s", rule, text, plan);
	} else if (!at || strncmp(at + strlen(begin), rest, strlen(rest)) ||
		   at[strlen(begin) + strlen(rest)] != '\n' || strstr(at + 1, begin)) {
		fail_msg("%s: %s\nwanted %s%s\n%s", rule, text, begin, rest, plan);
	}
	free(plan);
}

/* An expression as a column: what becomes of it. */
static void expect_column(const char *rule, const char *expression, const char *becomes)
{
	char text[512];
	snprintf(text, sizeof(text), "from x in cluster.Function(\"a!b\") select new { v = %s }",
		 expression);
	expect(rule, text, "v = ", becomes);
}

/* A condition: what is left of it, on one line. */
static void expect_filter(const char *rule, const char *condition, const char *left)
{
	char text[512];
	snprintf(text, sizeof(text), "from x in cluster.Function(\"a!b\") where %s select x.tid",
		 condition);
	expect(rule, text, "filter     ", left);
}

static void operations(void **unused)
{
	static const struct {
		const char *rule, *expression, *becomes;
	} cases[] = {
		{ "folding", "2 * 3 + 1s", "1000000006" },
		{ "folding", "x.tid * (7 % 4)", "x.tid * 3" },
		{ "neutral", "x.tid + 0", "x.tid" },
		{ "neutral", "0 | x.tid", "x.tid" },
		{ "neutral", "x.Arg(1) * 1 >>> 0", "x.Arg(1)" },
		{ "neutral", "x.Arg(1) & -1", "x.Arg(1)" },
		{ "neutral", "0 - x.tid", "0 - x.tid" },
		{ "neutral", "x.tid / 1 - 0", "x.tid" },
		{ "zero", "x.tid * 0", "0" },
		{ "zero", "0 & x.tid", "0" },
		{ "zero", "x.Arg(2) - x.Arg(2)", "0" },
		{ "zero", "x.tid ^ x.tid", "0" },
		{ "zero", "x.tid % 1", "0" },
		{ "zero", "x.tid % 2", "x.tid % 2" },
		{ "zero", "0 / x.tid", "0 / x.tid" },
		{ "idempotent", "x.tid & x.tid", "x.tid" },
		{ "idempotent", "x.tid + x.tid", "x.tid + x.tid" },
		{ "idempotent", "x.tid > 1 && x.tid > 1", "x.tid > 1" },
		{ "itself", "x.tid == x.tid", "true" },
		{ "itself", "x.time < x.time", "false" },
		{ "itself", "x.tid <= x.pid", "x.tid <= x.pid" },
		{ "involution", "- - x.tid", "x.tid" },
		{ "involution", "!!(x.tid > 1)", "x.tid > 1" },
		{ "involution", "~-x.tid", "~-x.tid" },
		{ "constant side", "x.tid > 1 || true", "true" },
		{ "constant condition", "1 < 2 ? x.tid : x.pid", "x.tid" },
		{ "equal branches", "x.cpu > 1 ? x.tid : x.tid", "x.tid" },
	};
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_column(cases[i].rule, cases[i].expression, cases[i].becomes);
}

/* What may have no value is not taken for zero or equal to itself. */
static void nothing_stays_nothing(void **unused)
{
	const char *text = "from x in cluster.Function(\"a!b\") group x by x.tid into g select new "
			   "{ g.Key, v = g.Max(y => y.cpu) - g.Max(y => y.cpu) }";
	(void)unused;
	expect("zero", text, "compute    v = ", "Max(x.cpu) - Max(x.cpu)");
}

static void conditions(void **unused)
{
	static const struct {
		const char *rule, *condition, *left;
	} cases[] = {
		{ "true", "true", NULL },
		{ "true", "x.tid > 5 && 1 == 1", "x.tid > 5" },
		{ "false", "x.tid > 5 && x.cpu == 1 && 1 == 2 && x.pid == 1", "false" },
		{ "repeated", "x.tid == 5 where x.tid == 5", "x.tid == 5" },
		{ "bounds", "x.tid > 5 && x.tid > 3", "x.tid > 5" },
		{ "bounds", "x.tid > 3 && x.tid > 5", "x.tid > 5" },
		{ "bounds", "x.tid >= 5 && x.tid > 5", "x.tid > 5" },
		{ "bounds", "x.tid < -5 && x.tid <= 9", "x.tid < -5" },
		{ "bounds", "x.time < Now && x.time < Now.AddSeconds(1)",
		  "x.time < 2023-11-14T22:13:20Z" },
		{ "value and bound", "x.tid == 7 && x.tid > 3", "x.tid == 7" },
	};
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_filter(cases[i].rule, cases[i].condition, cases[i].left);
}

/* Conditions that bound on different sides, or different things, all stay. */
static void conditions_stay(void **unused)
{
	static const char *const pairs[] = { "x.tid > 3 && x.tid < 5", "x.tid > 3 && x.pid > 5",
					     "x.tid == 3 && x.tid > 5", "x.tid != 3 && x.tid > 1",
					     "3 < x.tid && 5 < x.tid" };
	(void)unused;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text),
			 "from x in cluster.Function(\"a!b\") where %s select x.tid", pairs[i]);
		char *plan = explain(text), *first = strstr(plan, "  filter");
		if (!first || !strstr(first + 1, "  filter"))
			fail_msg("%s\n%s", text, plan);
		free(plan);
	}
}

/* Where things are done: rules that move them. */
static void placement(void **unused)
{
#define JOIN                                                                                       \
	"from a in cluster.Function(\"a!b\") join b in cluster.Function(\"c!d\") on a.tid equals " \
	"b.tid within 1ms "
#define GROUP "from x in cluster.Function(\"a!b\") group x by x.tid into g "
	static const struct {
		const char *rule, *text, *begin, *rest;
	} cases[] = {
		{ "filter push-down into the probe",
		  GROUP "where g.Key > 1 select new { g.Key, n = g.Count() }", "  filter     ",
		  "x.tid > 1" },
		{ "filter that needs aggregates stays at the root",
		  GROUP "where g.Count() > 1 select new { g.Key }", "  rows       ",
		  "keep rows where Count() > 1" },
		{ "filter push-down past a distinct",
		  "cluster.Function(\"a!b\").Select(x => x.tid).Distinct().Where(t => t > 1)",
		  "  filter     ", "x.tid > 1" },
		{ "no push-down past a take",
		  "cluster.Function(\"a!b\").Select(x => x.tid).Take(3).Where(t => t > 1)",
		  "  filter     ", NULL },
		{ "filter push-down to a side", JOIN "where b.cpu > 3 select a.tid",
		  "  filter     ", "b.cpu > 3" },
		{ "computing pushed to a side", JOIN "select b.cpu * 2 + b.pid",
		  "  column     column_3 = ", "b.cpu * 2 + b.pid" },
		{ "fields that nothing needs are not handed on",
		  JOIN "let unused = a.comm select b.tid", "a.comm", NULL },
		{ "join of a process", JOIN "select a.tid", "join         ",
		  "in the aggregator, per process; each pair when its later row arrives" },
		{ "early aggregation", "cluster.Function(\"a!b\").Sum(x => x.Arg(0))",
		  "  state      ", "one row of 8 bytes per thread" },
		{ "combiner and reducer", GROUP "select new { g.Key, n = g.Count() }",
		  "machine\n  merge      ", "the rows of all processes by key: n by count" },
		{ "common aggregates are kept once",
		  GROUP
		  "where g.Count() > 1 select new { g.Key, n = g.Count(), m = g.Count() + 1 }",
		  "  update     ", "n = count" },
		{ "a key that is computed of a key",
		  GROUP "select new { k = g.Key * 2, n = g.Count() }",
		  "  key        k = ", "x.tid * 2" },
		{ "no rows but those of the take",
		  "cluster.Function(\"a!b\").Select(x => x.tid).Take(3)", "  rows       ",
		  "the first 3 rows" },
	};
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect(cases[i].rule, cases[i].text, cases[i].begin, cases[i].rest);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(operations),
					    cmocka_unit_test(nothing_stays_nothing),
					    cmocka_unit_test(conditions),
					    cmocka_unit_test(conditions_stay),
					    cmocka_unit_test(placement) };
	return cmocka_run_group_tests_name("rewrite rules", tests, NULL, NULL);
}
