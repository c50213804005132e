/* SPDX-License-Identifier: MIT */
/*
 * What queries give, against the tables of cases.h. Limits on size and nesting, whose texts would
 * be long, are tested here without tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cases.h"
#include "fay/query.h"

#define NOW 1700000000000000000u

/* What the query gives: a plan, text and JSON, or an error. */
static char *outcome(const char *text, const char **kind)
{
	struct fay_error error = { 0 };
	struct fay_plan *plan = NULL;
	char *result = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&result, &size);
	assert_non_null(memory);
	int code = fay_query_plan_with(text,
				       &(struct fay_query_options){ .now = NOW,
								    .extend = true,
								    .long_strings = true,
								    .long_kernel_strings = true },
				       &plan, &error);
	*kind = code ? "error" : "plan";
	if (code) {
		assert_int_equal(code, error.code);
		fprintf(memory, "exit code %d\n%s\n", code, error.message);
	} else {
		fay_plan_print(memory, plan);
		fay_plan_print_json(memory, plan);
		fay_plan_destroy(plan);
	}
	fclose(memory);
	return result;
}

/* True if the case is as expected; says what differs otherwise. */
static bool check_case(const char *path, const struct query_case *c)
{
	const char *kind;
	char *is = outcome(c->text, &kind);
	bool same = c->kind && strcmp(c->kind, kind) == 0 && strcmp(is, c->outcome) == 0;
	if (!same)
		print_error("%s: %s: expected %s\n%s\nbut it is %s\n%s\n", path, c->name,
			    c->kind ? c->kind : "(nothing)", c->kind ? c->outcome : "", kind, is);
	free(is);
	return same;
}

static void regenerate(struct query_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		table->cases[i].outcome = outcome(table->cases[i].text, &table->cases[i].kind);
	query_table_write(table);
	for (size_t i = 0; i < table->count; i++)
		free((char *)table->cases[i].outcome);
}

static void golden_cases(void **state)
{
	static struct query_table table;
	size_t count = 0, wrong = 0;
	DIR *folder = opendir(FAY_QUERY_CASES);
	assert_non_null(folder);
	while (query_table_next(folder, FAY_QUERY_CASES, &table)) {
		count += table.count;
		if (getenv("FAY_REGENERATE"))
			regenerate(&table);
		else
			for (size_t i = 0; i < table.count; i++)
				wrong += !check_case(table.path, &table.cases[i]);
		query_table_free(&table);
	}
	closedir(folder);
	print_message("%zu cases\n", count);
	assert_int_equal(wrong, 0);
	assert_true(count >= 300);
}

/* `head`, then `count` times `piece`, then `tail`. */
static char *repeat(const char *head, const char *piece, size_t count, const char *tail)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	assert_non_null(memory);
	fputs(head, memory);
	while (count--)
		fputs(piece, memory);
	fputs(tail, memory);
	fclose(memory);
	return text;
}

static void expect_code(char *text, int code, const char *part)
{
	struct fay_error error = { 0 };
	struct fay_plan *plan = NULL;
	int is = fay_query_plan(text, NOW, &plan, &error);
	if (is != code)
		print_error("%.60s...: %s\n", text, error.message);
	assert_int_equal(is, code);
	if (is)
		assert_non_null(strstr(error.message, part));
	else
		fay_plan_destroy(plan);
	free(text);
}

#define COUNT_OF_READS "cluster.Function(\"libc!read\").Count(x => "

static void limits(void **state)
{
	expect_code(repeat("", " ", 1u << 20, ""), FAY_E_LIMIT, "65536 bytes");
	expect_code(repeat("", "(", 60000, ""), FAY_E_LIMIT, "nesting");
	expect_code(repeat("", "-", 60000, "1"), FAY_E_LIMIT, "nesting");
	expect_code(repeat("", "x=>", 20000, "1"), FAY_E_LIMIT, "nesting");
	expect_code(repeat("", "new{a=", 10000, "1"), FAY_E_LIMIT, "nesting");
	expect_code(repeat("", "from a in ", 6000, "1"), FAY_E_LIMIT, "nesting");
	expect_code(repeat("1", "?1:1", 10000, ""), FAY_E_LIMIT, "nesting");
	expect_code(repeat("1", "+1", 30000, ""), FAY_E_LIMIT, "deep");
	expect_code(repeat("a", ".a", 30000, ""), FAY_E_LIMIT, "deep");
	expect_code(repeat("a", "()", 30000, ""), FAY_E_LIMIT, "deep");
	expect_code(repeat("", "a", 60000, ""), FAY_E_LIMIT, "127");
	expect_code(repeat(COUNT_OF_READS "x.Arg(0)", "+x.Arg(1)", 900, "== 1)"), FAY_OK, "");
	/* A `let` that doubles: small as a graph, too large when written out. */
	char *doubling = repeat("from x in cluster.Function(\"a!b\") let a = x.Arg(0) + x.Arg(1) ",
				"let a = a + a ", 10, "select a");
	expect_code(doubling, FAY_OK, "");
	doubling = repeat("from x in cluster.Function(\"a!b\") let a = x.Arg(0) + x.Arg(1) ",
			  "let a = a * a ", 100, "select a");
	expect_code(doubling, FAY_E_LIMIT, "operations");
	/* Records that double, once as values of one side of a join, once as a key. */
	doubling =
		repeat("from x in cluster.Function(\"a!b\") let a = new { p = x.tid, q = x.cpu } ",
		       "let a = new { p = a, q = a } ", 40,
		       "join y in cluster.Function(\"c!d\") on x.tid equals y.tid within 1ms "
		       "select y.tid");
	expect_code(doubling, FAY_E_LIMIT, "memory");
	doubling =
		repeat("from x in cluster.Function(\"a!b\") let a = new { p = x.tid, q = x.cpu } ",
		       "let a = new { p = a, q = a } ", 40, "group x by a into g select g.Count()");
	expect_code(doubling, FAY_E_LIMIT, "memory");
	/* Real numbers have an end, too. */
	expect_code(repeat("cluster.Function(\"a!b\").GroupBy(x => x.tid).Select(g => g.Count() * ",
			   "9", 308, ".5)"),
		    FAY_OK, "");
	expect_code(repeat("cluster.Function(\"a!b\").GroupBy(x => x.tid).Select(g => g.Count() * ",
			   "9", 309, ".5)"),
		    FAY_E_USAGE, "does not fit");
	/* Many conditions. */
	expect_code(repeat("from x in cluster.Function(\"a!b\") join y in "
			   "cluster.Function(\"c!d\") on x.tid equals y.tid within 1ms ",
			   "where y.cpu>x.Arg(1) ", 2900, "select y.tid"),
		    FAY_OK, "");
	/* 64 columns are in order, 65 not. */
	expect_code(repeat("from x in cluster.Function(\"a!b\") select new {", "a = 1,", 65, "}"),
		    FAY_E_LIMIT, "64 members");
	expect_code(repeat("from x in cluster.Function(\"", "a", 300, "!b\") select x"),
		    FAY_E_LIMIT, "255 bytes");
	expect_code(repeat(COUNT_OF_READS "x.comm == \"", "a", 16, "\")"), FAY_E_USAGE, "15 bytes");
	expect_code(repeat(COUNT_OF_READS "x.comm == \"", "a", 15, "\")"), FAY_OK, "");
	expect_code(repeat("", "extend \"a.c\"", 9, COUNT_OF_READS "true)"), FAY_E_LIMIT,
		    "8 files");
	expect_code(repeat("", "extend \"functions.c\"", 1, COUNT_OF_READS "true)"), FAY_E_REFUSED,
		    "extended by C files here");
	/* A long line shows a window around the caret. */
	expect_code(repeat("", " ", 5000, "@"), FAY_E_USAGE, "query:1:5001");
}

/* Every text cut off anywhere gives an error or a plan, and never reads past its end (ASan). */
static void truncated(void **state)
{
	static const char text[] =
		"from io in cluster.Function(\"libc!read\") // c\n where io.time < "
		"Now.AddMinutes(5.5) "
		"let size = io.Arg(2) /* x */ group io by new { size, io.comm } into g select new "
		"{ "
		"g.Key.size, n = g.Count(x => x.cpu != 0x1f ? true : !(x.tid >= -1)) };";
	for (size_t length = 0; length < sizeof(text); length++) {
		struct fay_error error = { 0 };
		struct fay_plan *plan;
		char *copy = strndup(text, length);
		assert_non_null(copy);
		if (fay_query_plan(copy, NOW, &plan, &error))
			assert_int_not_equal(error.message[0], 0);
		else
			fay_plan_destroy(plan);
		free(copy);
	}
}

/* Comprehension and method form of one query give the same state. */
static void same_meaning(void **state)
{
	static const char *const pairs[][2] = {
		{ "from x in cluster.Function(\"a!b\") where x.cpu == 1 group x by x.tid into g "
		  "select "
		  "new { g.Key, n = g.Count() }",
		  "cluster.Function(\"a!b\").Where(x => x.cpu == 1).GroupBy(x => x.tid).Select(g "
		  "=> new "
		  "{ g.Key, n = g.Count() })" },
		{ "(from x in cluster.Function(\"a!b\") select x.Arg(2)).Sum()",
		  "cluster.Function(\"a!b\").Select(x => x.Arg(2)).Sum()" },
		{ "cluster.Function(\"a!b\").Sum(x => x.Arg(2))",
		  "cluster.Function(\"a!b\").Select(x => x.Arg(2)).Sum()" },
		{ "cluster.Function(\"a!b\").Where(x => x.cpu == 1).Count()",
		  "cluster.Function(\"a!b\").Count(x => x.cpu == 1)" },
		{ "from x in cluster.Function(\"a!b\") where x.cpu == 1 && x.tid > 5 select x.tid",
		  "from x in cluster.Function(\"a!b\") where x.cpu == 1 where x.tid > 5 select "
		  "x.tid" },
		{ "from x in cluster.Function(\"a!b\") group x by 1 into g select new { s = "
		  "g.Where(x => "
		  "x.cpu == 1).Select(x => x.tid).Sum() }",
		  "from x in cluster.Function(\"a!b\") group x.tid by 1 into g select new { s = "
		  "g.Where(x => 1 == 1).Sum() }" },
	};
	for (size_t i = 0; i + 1 < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *suffix[2];
		char *a = outcome(pairs[i][0], &suffix[0]), *b = outcome(pairs[i][1], &suffix[1]);
		assert_string_equal(suffix[0], "plan");
		*strchr(strstr(a, "{\"query\":"), ',') = '\0'; /* the JSON repeats the text */
		*strchr(strstr(b, "{\"query\":"), ',') = '\0';
		*strstr(a, "{\"query\":") = *strstr(b, "{\"query\":") = '\0';
		assert_string_equal(a, b);
		free(a);
		free(b);
	}
}

/* Any `time < CONSTANT` among the conditions bounds the query; others do not. */
static void deadlines(void **state)
{
	static const struct {
		const char *where;
		uint64_t deadline;
	} cases[] = {
		{ "x.time < Now.AddSeconds(1)", NOW + 1000000000u },
		{ "x.time <= Now.AddSeconds(1)", NOW + 1000000001u },
		{ "Now.AddMilliseconds(1.5) > x.time", NOW + 1500000u },
		{ "Now >= x.time && x.cpu == 1", NOW + 1 },
		{ "x.time < Now.AddHours(1) && x.time < Now.AddMinutes(-2)", NOW - 120000000000u },
		{ "x.time < Now + 1_500.5ms", NOW + 1500500000u },
		{ "x.time < Now.AddMilliseconds(1_0_0.25)", NOW + 100250000u },
		{ "x.time > Now.AddHours(1)", 0 },
		{ "x.time < Now || x.cpu == 1", 0 },
		{ "!(x.time < Now)", 0 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		struct fay_error error;
		struct fay_plan *plan;
		snprintf(text, sizeof(text), "cluster.Function(\"a!b\").Count(x => %s)",
			 cases[i].where);
		assert_int_equal(fay_query_plan(text, NOW, &plan, &error), 0);
		assert_int_equal(plan->deadline, cases[i].deadline);
		fay_plan_destroy(plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_cases), cmocka_unit_test(limits),
		cmocka_unit_test(truncated),    cmocka_unit_test(same_meaning),
		cmocka_unit_test(deadlines),
	};
	/* where the files are that cases name */
	return chdir(FAY_QUERY_CASES) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
