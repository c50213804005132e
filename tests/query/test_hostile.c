/* SPDX-License-Identifier: MIT */
/* Texts that are made to be too much: each is refused with the limit that it meets, in little
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "fay/query.h"

#define NOW 1700000000000000000u
#define MEMORY (64l << 10) /* KiB, for all of them */
#define SOURCE "cluster.Function(\"a!b\")"

/* before, `count` times `piece`, middle, as often `closing`, after; malloc'ed. */
struct hostile {
	const char *before, *piece, *middle, *closing, *after;
	unsigned count;
	const char *says;
};

static char *text_of(const struct hostile *h)
{
	size_t size = strlen(h->before) + strlen(h->middle) + strlen(h->after) +
		      h->count * (strlen(h->piece) + strlen(h->closing)) + 1;
	char *text = malloc(size), *at = text;
	assert_non_null(text);
	at = stpcpy(at, h->before);
	for (unsigned i = 0; i < h->count; i++)
		at = stpcpy(at, h->piece);
	at = stpcpy(at, h->middle);
	for (unsigned i = 0; i < h->count; i++)
		at = stpcpy(at, h->closing);
	stpcpy(at, h->after);
	return text;
}

static const struct hostile texts[] = {
	{ SOURCE, " ", "", "", ".Count()", 1u << 20, "longer than" },
	{ SOURCE ".Count(x => ", "(", "x.tid", ")", " == 1)", 10000, "levels of nesting" },
	{ SOURCE ".Count(x => ", "-", "x.tid", "", " == 1)", 10000, "levels of nesting" },
	{ SOURCE ".Count(x => ", "!", "true", "", ")", 10000, "levels of nesting" },
	{ SOURCE ".Count(x => 1 == x.tid", "+9", "", "", ")", 10000, "operators deep" },
	{ SOURCE ".Count(x => x.tid", " << 1", "", "", " == 1)", 10000, "operators deep" },
	{ SOURCE ".Count(x => x", ".a", "", "", ")", 10000, "operators deep" },
	{ SOURCE ".Count(x => ", "1<2?", "true", ":true", ")", 7000, "levels of nesting" },
	{ SOURCE ".Select(x => ", "new{a=", "1", "}", ")", 9000, "levels of nesting" },
	{ SOURCE, ".Take(1)", "", "", ".Count()", 8000, "operators deep" },
	{ "from a in " SOURCE, " let a=a", "", "", " select 1", 8000, NULL },
	{ "from a in " SOURCE " let b=a.tid", " let b=b+b", "", "", " select b", 6000,
	  "operations" },
	{ "from a in " SOURCE " select new{", "a.tid,", "", "", "a.pid}", 10000, "members" },
	{ "from a in " SOURCE " where a.tid==1", " where a.tid==1", "", "", " select 1", 4000,
	  NULL },
};

/* NULL for what it says: it may be accepted, or refused in words. */
static void check_text(const char *text, const char *says)
{
	struct fay_error error = { 0 };
	struct fay_plan *plan = NULL;
	int result = fay_query_plan(text, NOW, &plan, &error);
	if (says && (result != FAY_E_LIMIT || !strstr(error.message, says)))
		fail_msg("%.60s...: %d, %s", text, result, error.message);
	assert_true(result == FAY_OK || error.message[0]);
	assert_true(strlen(error.message) < 1000); /* not the whole text */
	if (result == FAY_OK)
		fay_plan_destroy(plan);
}

static void refused(void **state)
{
	struct rusage before, after;
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text = text_of(&texts[i]);
		check_text(text, texts[i].says);
		free(text);
	}
	getrusage(RUSAGE_SELF, &after);
	print_message("%ld KiB more at the most\n", after.ru_maxrss - before.ru_maxrss);
#ifndef __SANITIZE_ADDRESS__
	assert_true(after.ru_maxrss - before.ru_maxrss < MEMORY);
#endif
}

/* Between the two texts a sum of `count` different aggregates; malloc'ed. */
static char *many_aggregates(const char *before, unsigned count, const char *after)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	fputs(before, out);
	for (unsigned i = 0; i < count; i++)
		fprintf(out, "%sg.Count(x => x.Arg(0) == %u)", i ? " + " : "", i);
	fputs(after, out);
	fclose(out);
	return text;
}

/* There is room for 64 in a plan, whatever needs them: a column, an order, a condition, groups of
 * groups, the pairs of a join. */
static void aggregates(void **state)
{
	static const struct {
		/* of a join: its first source hands on as many columns, and two for joining */
		unsigned most;
		const char *before, *after;
	} places[] = {
		{ 64, "from x in " SOURCE " group x by x.tid into g select new { n = ", " }" },
		{ 64, "from x in " SOURCE " group x by x.tid into g orderby ", " select g.Key" },
		{ 64, "from x in " SOURCE " group x by x.tid into g where ", " > 5 select g.Key" },
		{ 64, "from x in " SOURCE " group x by x.tid into g group g by ",
		  " into h select new { h.Key, n = h.Count() }" },
		{ 62,
		  "from x in " SOURCE " join y in " SOURCE
		  " on x.tid equals y.tid within 1ms group x by x.tid into g select new { n = ",
		  " }" },
	};
	static const unsigned more[] = { 65, 98, 140, 500 };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct fay_error error = { 0 };
		struct fay_plan *plan = NULL;
		char *text = many_aggregates(places[i].before, places[i].most, places[i].after);
		if (fay_query_plan(text, NOW, &plan, &error))
			fail_msg("%.60s...: %s", text, error.message);
		fay_plan_destroy(plan);
		free(text);
		for (size_t c = 0; c < sizeof(more) / sizeof(more[0]); c++) {
			text = many_aggregates(places[i].before, more[c], places[i].after);
			check_text(text, "64 aggregates");
			free(text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(refused),
					    cmocka_unit_test(aggregates) };
	return cmocka_run_group_tests_name("hostile queries", tests, NULL, NULL);
}
