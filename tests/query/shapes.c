/* SPDX-License-Identifier: MIT */
#include "shapes.h"

/* --- making them up --- */

static struct aggregate random_aggregate(bool integer)
{
	struct aggregate a = {.kind = (enum kind)below(integer ? LAST + 1u : KINDS)};
	a.k = below(8) ? 1 + below(8) : 60; /* three in a row have room */
	if (a.kind != COUNT)
		a.operand = random_tree(a.kind == COUNT_IF || a.kind == ANY || a.kind == ALL, 2);
	return a;
}

void random_shape(struct shape *s)
{
	memset(s, 0, sizeof(*s));
	s->kind = below(5) == 0 ? VALUE : below(4) ? GROUPS : ROWS;
	s->skip = s->take = -1;
	s->filter_count = below(3);
	for (unsigned i = 0; i < s->filter_count; i++)
		s->filters[i] = random_tree(true, 2);
	if (s->kind != ROWS && below(2)) {
		s->step = (1 + below(4)) * MS;
		s->width = s->step * (1 + below(2) * below(4));
	} else if (s->kind != ROWS && below(3) == 0) {
		s->every = 1 + below(below(2) ? 8 : 60);
		s->before = below(s->filter_count + 1);
	}
	s->aggregate_count = s->kind == VALUE ? 1 : s->kind == GROUPS ? 1 + below(3) : 0;
	for (unsigned i = 0; i < s->aggregate_count; i++)
		s->aggregates[i] = random_aggregate(s->kind == GROUPS && i < 2 && below(2));
	if (s->kind == VALUE)
		return;
	s->key_count = s->kind == GROUPS ? 1 + below(2) : 0;
	for (unsigned i = 0; i < s->key_count; i++) {
		s->keys[i].kind = (enum key_kind)below(KEY_KINDS);
		s->keys[i].tree = s->keys[i].kind == KEY_TEST ? random_tree(true, 2) : NULL;
	}
	for (unsigned i = 0; i < 2 && s->kind == ROWS; i++)
		s->columns[i] = random_tree(false, 2);
	bool integers = s->kind == GROUPS && GIVES_INTEGER(s->aggregates[0]);
	s->has_condition = integers && below(3) == 0;
	s->limit = below(2) ? below(5) : interesting();
	s->computes =
		integers && s->aggregate_count > 1 && GIVES_INTEGER(s->aggregates[1]) && below(2);
	s->operator= "+-*/"[below(4)];
	s->regroups = integers && s->key_count == 1 && below(3) == 0;
	if (s->regroups) {
		static const enum kind kinds[] = {COUNT, COUNT_IF, SUM, MIN, MAX, AVERAGE, ANY, ALL, FIRST, LAST};
		s->computes = false;
		s->regroup_key = below(4);
		for (unsigned i = 0; i < 2; i++)
			s->kinds[i] = kinds[below(10)];
		s->inner_order = below(2) ? NOT_ORDERED : ORDERED + below(2);
	}
	s->order_count = below(3);
	for (unsigned i = 0; i < s->order_count; i++) {
		s->orders[i].column =
			below(s->kind == ROWS ? 2 : s->regroups ? 3 : s->key_count + s->aggregate_count);
		if (!s->regroups && s->orders[i].column >= s->key_count && s->aggregates[s->orders[i].column - s->key_count].kind == TOP)
			s->orders[i].column = 0; /* lists have no order */
		s->orders[i].descending = below(2);
	}
	s->skip = below(4) ? -1 : (int64_t)below(6);
	s->take = below(3) ? -1 : (int64_t)below(12);
}

void free_shape(struct shape *s)
{
	for (unsigned i = 0; i < 2; i++) {
		free_tree(s->filters[i]);
		free_tree(s->columns[i]);
		free_tree(s->keys[i].tree);
	}
	for (unsigned i = 0; i < s->aggregate_count; i++)
		free_tree(s->aggregates[i].operand);
}

/* --- as text --- */

static void print_aggregate(FILE *out, const struct aggregate *a)
{
	fprintf(out, "%s(", aggregate_names[a->kind]);
	if (a->kind == TOP)
		fprintf(out, "%u, ", a->k);
	if (a->operand) {
		fputs("x => ", out);
		print_tree(out, a->operand);
	}
	fputc(')', out);
}

static void print_key(FILE *out, const struct shape *s, unsigned i)
{
	static const char *const texts[] = {"x.tid", "x.cpu % 3", "x.comm", "x.function",
					    "x.Arg(0) & 3"};
	if (s->keys[i].kind == KEY_TEST)
		print_tree(out, s->keys[i].tree);
	else
		fputs(texts[s->keys[i].kind], out);
}

static void print_key_again(FILE *out, const struct shape *s, unsigned i)
{
	fputs(s->key_count == 1 ? "g.Key" : i ? "g.Key.q" : "g.Key.p", out);
}

static void print_window(FILE *out, const struct shape *s)
{
	if (s->step && s->width == s->step)
		fprintf(out, ".Tumbling(%llums)", (unsigned long long)(s->step / MS));
	else if (s->step)
		fprintf(out, ".Sliding(%llums, %lluus)", (unsigned long long)(s->width / MS),
			(unsigned long long)(s->step / 1000));
	else if (s->every)
		fprintf(out, ".Every(%u)", s->every);
}

/* Of the groups of groups: aggregate 0 of each, or what is asked of it. */
static void print_outer(FILE *out, const struct shape *s, unsigned i)
{
	bool test = s->kinds[i] == COUNT_IF || s->kinds[i] == ANY || s->kinds[i] == ALL;
	fprintf(out, "h.%s(", aggregate_names[s->kinds[i]]);
	if (s->kinds[i] != COUNT) {
		fputs("y => y.", out);
		print_aggregate(out, &s->aggregates[0]);
		if (test)
			fprintf(out, " > (%lld)", (long long)s->limit);
	}
	fputc(')', out);
}

static void print_regroup(FILE *out, const struct shape *s)
{
	if (s->inner_order) {
		fputs(" orderby g.", out);
		print_aggregate(out, &s->aggregates[0]);
		fputs(s->inner_order == DESCENDING ? " descending" : "", out);
	}
	fputs(" group g by ", out);
	if (s->regroup_key <= BY_REST) {
		fputs("g.", out);
		print_aggregate(out, &s->aggregates[0]);
		fputs(s->regroup_key == BY_REST ? " % 3" : "", out);
	} else {
		fputs(s->regroup_key == BY_KEY ? "g.Key" : "1", out);
	}
	fputs(" into h", out);
}

static void print_order(FILE *out, const struct shape *s, unsigned i)
{
	unsigned column = s->orders[i].column;
	fputs(i ? ", " : " orderby ", out);
	if (s->kind == ROWS) {
		print_tree(out, s->columns[column]);
	} else if (s->regroups) {
		if (column)
			print_outer(out, s, column - 1);
		else
			fputs("h.Key", out);
	} else if (column < s->key_count) {
		print_key_again(out, s, column);
	} else {
		fputs("g.", out);
		print_aggregate(out, &s->aggregates[column - s->key_count]);
	}
	fputs(s->orders[i].descending ? " descending" : "", out);
}

static void print_groups(FILE *out, const struct shape *s)
{
	fputs(" group x by ", out);
	fputs(s->key_count == 1 ? "" : "new { p = ", out);
	print_key(out, s, 0);
	if (s->key_count == 2) {
		fputs(", q = ", out);
		print_key(out, s, 1);
		fputs(" }", out);
	}
	fputs(" into g", out);
	if (s->has_condition) {
		fputs(" where g.", out);
		print_aggregate(out, &s->aggregates[0]);
		fprintf(out, " > (%lld)", (long long)s->limit);
	}
}

static void print_columns(FILE *out, const struct shape *s)
{
	fputs(" select new { ", out);
	if (s->regroups) {
		fputs("k = h.Key", out);
		for (unsigned i = 0; i < 2; i++) {
			fprintf(out, ", a%u = ", i);
			print_outer(out, s, i);
		}
		fputs(" }", out);
		return;
	}
	for (unsigned i = 0; i < 2 && s->kind == ROWS; i++) {
		fprintf(out, "%sc%u = ", i ? ", " : "", i);
		print_tree(out, s->columns[i]);
	}
	for (unsigned i = 0; i < s->key_count; i++) {
		fprintf(out, "%sk%u = ", i ? ", " : "", i);
		print_key_again(out, s, i);
	}
	for (unsigned i = 0; i < s->aggregate_count; i++) {
		fprintf(out, ", a%u = g.", i);
		print_aggregate(out, &s->aggregates[i]);
	}
	if (s->computes) {
		fputs(", computed = g.", out);
		print_aggregate(out, &s->aggregates[0]);
		fprintf(out, " %c g.", s->operator);
		print_aggregate(out, &s->aggregates[1]);
	}
	fputs(" }", out);
}

static void print_filter(FILE *out, const struct shape *s, unsigned i, bool method)
{
	fputs(method ? ".Where(x => " : " where ", out);
	print_tree(out, s->filters[i]);
	fputs(method ? ")" : "", out);
}

char *text_of_shape(const struct shape *s, const char *source)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	fprintf(out, "%s%s", s->kind == VALUE ? "" : "from x in ", source);
	for (unsigned i = 0; i < s->before; i++)
		print_filter(out, s, i, true);
	print_window(out, s);
	for (unsigned i = s->before; i < s->filter_count; i++)
		print_filter(out, s, i, s->kind == VALUE);
	if (s->kind == VALUE) {
		fputc('.', out);
		print_aggregate(out, &s->aggregates[0]);
	}
	if (s->kind == GROUPS)
		print_groups(out, s);
	if (s->regroups)
		print_regroup(out, s);
	for (unsigned i = 0; i < s->order_count; i++)
		print_order(out, s, i);
	if (s->kind != VALUE)
		print_columns(out, s);
	if (s->skip >= 0)
		fprintf(out, " skip %lld", (long long)s->skip);
	if (s->take >= 0)
		fprintf(out, " take %lld", (long long)s->take);
	fclose(out);
	return text;
}
