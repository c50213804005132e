/* SPDX-License-Identifier: MIT */
#include "saved_events.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- aggregates
 * -------------------------------------------------------------------------------------------------
 * */

struct group {
	char *key; /* as JSON: the window and the keys */
	const struct event **events;
	size_t count;
};

static void print_range(struct range r, double slack)
{
	printf("{\"least\":%.17g,\"most\":%.17g}", r.least - fabs(r.least) * slack,
	       r.most + fabs(r.most) * slack);
}

static void print_integer(const struct column *c, struct range r)
{
	if (is_duration(c))
		print_range((struct range){ r.least - 1000, r.most + 1000 },
			    0.001); /* two clocks */
	else
		printf("%.0f", r.least);
}

static struct range sum_of(const struct column *c, const struct group *g)
{
	struct range sum = { 0, 0 };
	for (size_t i = 0; i < g->count; i++) {
		struct range one = range_of(c, g->events[i]);
		sum.least += one.least;
		sum.most += one.most;
	}
	return sum;
}

static struct range extreme_of(const struct column *c, const struct group *g, bool max)
{
	struct range r = range_of(c, g->events[0]);
	for (size_t i = 1; i < g->count; i++) {
		struct range one = range_of(c, g->events[i]);
		if (max ? one.least > r.least : one.least < r.least)
			r.least = one.least;
		if (max ? one.most > r.most : one.most < r.most)
			r.most = one.most;
	}
	return r;
}

static double deviation_of(const struct column *c, const struct group *g)
{
	double mean = sum_of(c, g).least / (double)g->count, squares = 0;
	for (size_t i = 0; i < g->count; i++) {
		double away = range_of(c, g->events[i]).least - mean;
		squares += away * away;
	}
	return sqrt(squares / (double)g->count);
}

static const struct event *end_of(const struct group *g, bool last)
{
	const struct event *end = g->events[last ? g->count - 1 : 0];
	for (size_t i = 0; i < g->count; i++)
		if (g->events[i] != end)
			require_order(last ? g->events[i] : end, last ? end : g->events[i]);
	return end;
}

static int compare_numbers(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

/* All values in order. `most`: the most that each may be. The caller's, to be freed. */
static double *sorted_values(const struct column *c, const struct group *g, bool most)
{
	double *values = malloc(g->count * sizeof(*values));
	for (size_t i = 0; i < g->count; i++) {
		struct range one = range_of(c, g->events[i]);
		values[i] = most ? one.most : one.least;
	}
	qsort(values, g->count, sizeof(*values), compare_numbers);
	return values;
}

/* How many values are at least `from`, for each power of two; then those above 0 are the first. */
static void print_histogram(const struct column *c, const struct group *g)
{
	double *least = sorted_values(c, g, false), *most = sorted_values(c, g, true);
	printf("{\"at_least\":[");
	for (int bucket = 0; bucket < 63; bucket++) {
		double from = ldexp(1, bucket);
		size_t counts[2] = { 0, 0 };
		for (size_t i = 0; i < g->count; i++) {
			counts[0] += least[i] >= from;
			counts[1] += most[i] >= from;
		}
		printf("%s[%.0f,%zu,%zu]", bucket ? "," : "", from, counts[0], counts[1]);
	}
	printf("],\"count\":%zu}", g->count);
	free(least);
	free(most);
}

/* Nearest rank, below and above: what lies between two values is for the product to choose. */
static void print_quantile(const struct column *c, const struct group *g, double q)
{
	double *least = sorted_values(c, g, false), *most = sorted_values(c, g, true),
	       rank = q * (double)(g->count - 1);
	size_t below = (size_t)floor(rank), above = (size_t)ceil(rank);
	struct range r = { least[below ? below - 1 : 0],
			   most[above + 1 < g->count ? above + 1 : above] };
	print_range((struct range){ r.least < 0 ? 0 : r.least, r.most < 0 ? 0 : r.most }, 1.0 / 32);
	free(least);
	free(most);
}

static void print_top(const struct column *c, const struct group *g, bool only_count)
{
	double *values = sorted_values(c, g, false);
	size_t different = 0;
	printf(only_count ? "" : "{\"top\":[");
	for (size_t i = 0, next; i < g->count; i = next) {
		for (next = i; next < g->count && !compare_numbers(&values[next], &values[i]);
		     next++)
			;
		if (!only_count)
			printf("%s{\"key\":%.0f,\"count\":%zu}", i ? "," : "", values[i], next - i);
		different++;
	}
	if (only_count)
		/* four standard errors; of few, two may share a register */
		print_range((struct range){ (double)(different > 1 ? different - 1 : different),
					    (double)different },
			    0.1);
	else
		printf("],\"count\":%zu}", g->count);
	free(values);
}

static void print_condition(const char *kind, char *text, const struct group *g)
{
	struct condition c = make_condition(text);
	size_t count = 0;
	for (size_t i = 0; i < g->count; i++)
		count += holds(&c, g->events[i]);
	if (!strcmp(kind, "countif"))
		printf("%zu", count);
	else
		fputs((!strcmp(kind, "any") ? count > 0 : count == g->count) ? "true" : "false",
		      stdout);
}

static void print_of_column(const char *kind, const char *name, double q, const struct group *g)
{
	struct column c = find_column(name);
	bool last = !strcmp(kind, "last"), max = !strcmp(kind, "max");
	if (!strcmp(kind, "sum"))
		print_integer(&c, sum_of(&c, g));
	else if (max || !strcmp(kind, "min"))
		print_integer(&c, extreme_of(&c, g, max));
	else if (!strcmp(kind, "average"))
		print_range((struct range){ sum_of(&c, g).least / (double)g->count,
					    sum_of(&c, g).most / (double)g->count },
			    is_duration(&c) ? 0.001 : 1e-9);
	else if (!strcmp(kind, "stddev"))
		print_range((struct range){ deviation_of(&c, g), deviation_of(&c, g) }, 1e-9);
	else if (last || !strcmp(kind, "first"))
		print_value(stdout, &c, end_of(g, last), true);
	else if (!strcmp(kind, "histogram"))
		print_histogram(&c, g);
	else if (!strcmp(kind, "quantile"))
		print_quantile(&c, g, q);
	else if (!strcmp(kind, "top") || !strcmp(kind, "distinct"))
		print_top(&c, g, kind[0] == 'd');
	else
		fail(1, "no aggregate ", kind);
}

static void print_aggregate(const char *word, const struct group *g)
{
	char *copy = strdup(word), *rest = copy, *kind = strsep(&rest, ":");
	double q = !strcmp(kind, "quantile") ? atof(strsep(&rest, ":")) : 0;
	if (!strcmp(kind, "count"))
		printf("%zu", g->count);
	else if (!strcmp(kind, "countif") || !strcmp(kind, "any") || !strcmp(kind, "all"))
		print_condition(kind, rest, g);
	else if (rest)
		print_of_column(kind, rest, q, g);
	else
		fail(1, "no aggregate ", word);
	free(copy);
}

/* --- groups
 * -------------------------------------------------------------------------------------------------
 * */

static struct column keys[8];
static size_t key_count;
static uint64_t width, step, every;
static struct group groups[EVENTS_MAX];
static size_t group_count;

static void add_to_group(const struct event *e, bool windows, uint64_t window)
{
	char *key = NULL;
	size_t size, at = 0;
	FILE *out = open_memstream(&key, &size);
	if (windows)
		fprintf(out, "%" PRIu64 ",", window);
	for (size_t k = 0; k < key_count; k++) {
		print_value(out, &keys[k], e, true);
		fputc(',', out);
	}
	fclose(out);
	while (at < group_count && strcmp(groups[at].key, key))
		at++;
	if (at == EVENTS_MAX)
		fail(1, "too many groups", "");
	struct group *g = &groups[at];
	if (at < group_count)
		free(key);
	else
		groups[group_count++].key = key;
	g->events = realloc(g->events, (g->count + 1) * sizeof(*g->events));
	g->events[g->count++] = e;
}

/* The windows that the event lies in. */
static void add_event(const struct event *e)
{
	if (every && e->number && e->number % every == 0)
		require_order(e - 1, e);
	if (every)
		add_to_group(e, true, e->number / every);
	if (!width) {
		if (!every)
			add_to_group(e, false, 0);
		return;
	}
	uint64_t pane = e->time[0] / step * step;
	if ((e->time[0] - APART) / step * step != pane ||
	    (e->time[1] + APART) / step * step != pane)
		fail(UNSURE, "a call lies on the edge of a window", "");
	for (uint64_t start = pane; start + width > pane; start -= step)
		add_to_group(e, true, start);
}

/* Whether the word says which events there are, and not what is asked of them. */
static bool take_word(const char *word)
{
	char *copy = strdup(word), *rest = copy; /* conditions refer to it */
	const char *kind = strsep(&rest, ":");
	if (!strcmp(kind, "where")) {
		struct condition c = make_condition(rest);
		select_events(&c);
	} else if (!strcmp(kind, "by")) {
		keys[key_count++] = find_column(rest);
	} else if (!strcmp(kind, "tumbling") || !strcmp(kind, "sliding")) {
		width = strtoull(strsep(&rest, ":"), NULL, 10);
		step = rest ? strtoull(rest, NULL, 10) : width;
	} else if (!strcmp(kind, "every")) {
		every = strtoull(rest, NULL, 10);
	} else {
		free(copy);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		fail(2, "FIRST LAST STREAM WORD...", "");
	int first = 4 + read_saved(argv[1], argv[2], argv[3], argv + 4);
	while (first < argc && take_word(argv[first]))
		first++;
	for (size_t i = 0; i < event_count; i++)
		events[i].number = i; /* of those that are left */
	for (size_t i = 0; i < event_count; i++)
		add_event(&events[i]);
	for (size_t i = 0; i < group_count; i++) {
		printf("[%s", groups[i].key);
		for (int w = first; w < argc; w++) {
			fputs(w > first ? "," : "", stdout);
			print_aggregate(argv[w], &groups[i]);
		}
		printf("]\n");
	}
	return 0;
}
