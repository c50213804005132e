/* SPDX-License-Identifier: MIT */
/* A random query as text: as a comprehension or by methods, which mean the same. */
#include "shapes.h"

/* --- parts of both forms --- */

static void print_limit(FILE *out, const struct shape *s)
{
	fprintf(out, " > (%lld)", (long long)s->limit);
}

static void print_aggregate(FILE *out, const struct shape *s, const struct aggregate *a)
{
	bool lambda = a->has_operand && !s->projects;
	if (a->condition) {
		fputs("Where(x => ", out);
		print_tree(out, a->condition);
		fputs(").", out);
	}
	fprintf(out, "%s(", aggregate_names[a->kind]);
	if (a->kind == TOP)
		fprintf(out, "%u", a->k);
	if (a->kind == QUANTILE)
		fprintf(out, a->percent == 100 ? "1" : "0.%02u", a->percent);
	if (lambda) {
		fputs(a->kind == TOP || a->kind == QUANTILE ? ", x => " : "x => ", out);
		print_scalar(out, &a->operand);
	}
	fputc(')', out);
}

static void print_group_aggregate(FILE *out, const struct shape *s, unsigned i)
{
	fputs("g.", out);
	print_aggregate(out, s, &s->aggregates[i]);
}

static void print_key_again(FILE *out, const struct shape *s, unsigned i)
{
	fputs(s->key_count == 1 ? "g.Key" : i ? "g.Key.q" : "g.Key.p", out);
}

static void print_filter(FILE *out, const struct shape *s, unsigned i, bool method)
{
	if (!method && s->lets)
		fprintf(out, " let f%u = ", i);
	else
		fputs(method ? ".Where(x => " : " where ", out);
	print_tree(out, s->filters[i]);
	if (!method && s->lets)
		fprintf(out, " where f%u", i);
	fputs(method ? ")" : "", out);
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

static void print_keys(FILE *out, const struct shape *s)
{
	fputs(s->key_count == 1 ? "" : "new { p = ", out);
	print_scalar(out, &s->keys[0]);
	if (s->key_count == 2) {
		fputs(", q = ", out);
		print_scalar(out, &s->keys[1]);
		fputs(" }", out);
	}
}

/* Of the groups of groups: aggregate 0 of each, or what is asked of it. */
static void print_outer(FILE *out, const struct shape *s, unsigned i)
{
	enum kind kind = s->regrouping.kinds[i];
	fprintf(out, "h.%s(", aggregate_names[kind]);
	if (kind != COUNT) {
		fputs("y => y.", out);
		print_aggregate(out, s, &s->aggregates[0]);
		if (IS_TEST(kind))
			print_limit(out, s);
	}
	fputc(')', out);
}

static void print_regroup_key(FILE *out, const struct shape *s)
{
	if (s->regrouping.key == BY_KEY || s->regrouping.key == ALL_TOGETHER) {
		fputs(s->regrouping.key == BY_KEY ? "g.Key" : "1", out);
		return;
	}
	print_group_aggregate(out, s, 0);
	fputs(s->regrouping.key == BY_REST ? " % 3" : "", out);
}

/* What rows are ordered by, behind the grouping. */
static void print_order_key(FILE *out, const struct shape *s, unsigned column)
{
	if (s->kind == ROWS)
		print_scalar(out, &s->keys[column]);
	else if (s->kind == DISTINCT_ROWS)
		fprintf(out, "y.k%u", column);
	else if (s->regrouping.key && column)
		print_outer(out, s, column - 1);
	else if (s->regrouping.key)
		fputs("h.Key", out);
	else if (column < s->key_count)
		print_key_again(out, s, column);
	else
		print_group_aggregate(out, s, column - s->key_count);
}

static void print_computed(FILE *out, const struct shape *s)
{
	fprintf(out, ", computed = %s", s->as_real ? "1.0 * " : "");
	print_group_aggregate(out, s, 0);
	fprintf(out, " %c ", s->operator);
	print_group_aggregate(out, s, 1);
}

/* What is selected. */
static void print_columns(FILE *out, const struct shape *s)
{
	const char *comma = "";
	fputs("new { ", out);
	if (s->regrouping.key) {
		fputs("k = h.Key", out);
		for (unsigned i = 0; i < 2; i++) {
			fprintf(out, ", a%u = ", i);
			print_outer(out, s, i);
		}
		fputs(" }", out);
		return;
	}
	for (unsigned i = first_shown(s); i < s->key_count; i++, comma = ", ") {
		fprintf(out, "%sk%u = ", comma, i);
		if (s->kind == GROUPS)
			print_key_again(out, s, i);
		else
			print_scalar(out, &s->keys[i]);
	}
	for (unsigned i = 0; i < s->aggregate_count; i++, comma = ", ") {
		fprintf(out, "%sa%u = ", comma, i);
		print_group_aggregate(out, s, i);
	}
	if (s->computes)
		print_computed(out, s);
	fputs(" }", out);
}

static void print_cut(FILE *out, const struct shape *s, const char *skip, const char *take,
		      const char *end)
{
	if (s->skip >= 0)
		fprintf(out, "%s%lld%s", skip, (long long)s->skip, end);
	if (s->take >= 0)
		fprintf(out, "%s%lld%s", take, (long long)s->take, end);
}

/* One value of all rows. */
static void print_fold(FILE *out, const struct shape *s)
{
	fprintf(out, ".%s(", aggregate_names[s->fold]);
	if (s->fold != COUNT)
		fprintf(out, "z => z.%s", s->kind == DISTINCT_ROWS ? "k0" : "a0");
	if (IS_TEST(s->fold))
		print_limit(out, s);
	fputc(')', out);
}

static bool limits_groups(const struct shape *s)
{
	return s->has_condition && !IS_BOOL(s->aggregates[0].kind);
}

/* --- comprehensions --- */

static void print_orders(FILE *out, const struct shape *s)
{
	for (unsigned i = 0; i < s->order_count; i++) {
		fputs(i ? ", " : " orderby ", out);
		print_order_key(out, s, s->orders[i].column);
		fputs(s->orders[i].descending ? " descending" : "", out);
	}
}

static void print_condition(FILE *out, const struct shape *s)
{
	fputs(s->lets ? " let v = " : " where ", out);
	print_group_aggregate(out, s, 0);
	fputs(s->lets ? " where v" : "", out);
	if (limits_groups(s))
		print_limit(out, s);
}

static void print_groups(FILE *out, const struct shape *s)
{
	fputs(" group ", out);
	if (s->projects)
		print_scalar(out, &s->aggregates[0].operand);
	else
		fputs("x", out);
	fputs(" by ", out);
	print_keys(out, s);
	fputs(" into g", out);
	if (s->has_condition)
		print_condition(out, s);
	if (!s->regrouping.key)
		return;
	if (s->regrouping.order) {
		fputs(" orderby ", out);
		print_group_aggregate(out, s, 0);
		fputs(s->regrouping.order == DESCENDING ? " descending" : "", out);
	}
	fputs(" group g by ", out);
	print_regroup_key(out, s);
	fputs(" into h", out);
}

static void print_select(FILE *out, const struct shape *s)
{
	fputs(" select ", out);
	print_columns(out, s);
	if (s->kind == DISTINCT_ROWS && s->order_count) {
		fputs(" into y distinct", out);
		print_orders(out, s);
		fputs(" select y", out);
	} else if (s->kind == DISTINCT_ROWS || s->distinct) {
		fputs(" distinct", out);
	}
	print_cut(out, s, " skip ", " take ", "");
}

/* The aggregate of a whole stream, of what the comprehension selects. */
static void print_selected_value(FILE *out, const struct shape *s)
{
	fputs(" select ", out);
	if (s->projects)
		print_scalar(out, &s->aggregates[0].operand);
	fputs(s->projects ? ")." : "x).", out);
	print_aggregate(out, s, &s->aggregates[0]);
}

static void print_comprehension(FILE *out, const struct shape *s, const char *source)
{
	fprintf(out, "%sfrom x in %s", s->kind == VALUE || s->folds ? "(" : "", source);
	for (unsigned i = 0; i < s->before; i++)
		print_filter(out, s, i, true);
	print_window(out, s);
	for (unsigned i = s->before; i < s->filter_count; i++)
		print_filter(out, s, i, false);
	if (s->kind == VALUE) {
		print_selected_value(out, s);
		return;
	}
	if (s->kind == GROUPS)
		print_groups(out, s);
	if (s->kind != DISTINCT_ROWS)
		print_orders(out, s);
	print_select(out, s);
	fputs(s->folds ? ")" : "", out);
	if (s->folds)
		print_fold(out, s);
}

/* --- methods --- */

static void print_order_methods(FILE *out, const struct shape *s)
{
	const char *name = s->kind == ROWS            ? "x"
			   : s->kind == DISTINCT_ROWS ? "y"
			   : s->regrouping.key        ? "h"
						      : "g";
	for (unsigned i = 0; i < s->order_count; i++) {
		fprintf(out, ".%s%s(%s => ", i ? "ThenBy" : "OrderBy",
			s->orders[i].descending ? "Descending" : "", name);
		print_order_key(out, s, s->orders[i].column);
		fputc(')', out);
	}
}

static void print_group_methods(FILE *out, const struct shape *s)
{
	fputs(".GroupBy(x => ", out);
	print_keys(out, s);
	if (s->projects) {
		fputs(", x => ", out);
		print_scalar(out, &s->aggregates[0].operand);
	}
	fputc(')', out);
	if (s->has_condition) {
		fputs(".Where(g => ", out);
		print_group_aggregate(out, s, 0);
		if (limits_groups(s))
			print_limit(out, s);
		fputc(')', out);
	}
	if (!s->regrouping.key)
		return;
	if (s->regrouping.order) {
		fprintf(out, ".OrderBy%s(g => ",
			s->regrouping.order == DESCENDING ? "Descending" : "");
		print_group_aggregate(out, s, 0);
		fputc(')', out);
	}
	fputs(".GroupBy(g => ", out);
	print_regroup_key(out, s);
	fputc(')', out);
}

static void print_kmeans(FILE *out, const struct shape *s)
{
	fprintf(out, ".KMeans(%u, g => g.Key.p, g => g.Key.q, g => ", s->clusters);
	print_group_aggregate(out, s, 0);
	fputc(')', out);
}

static void print_source(FILE *out, const struct shape *s, const char *source)
{
	fputs(source, out);
	for (unsigned i = 0; i < s->before; i++)
		print_filter(out, s, i, true);
	print_window(out, s);
	for (unsigned i = s->before; i < s->filter_count; i++)
		print_filter(out, s, i, true);
}

static void print_value(FILE *out, const struct shape *s)
{
	if (s->projects) {
		fputs(".Select(x => ", out);
		print_scalar(out, &s->aggregates[0].operand);
		fputc(')', out);
	}
	fputc('.', out);
	print_aggregate(out, s, &s->aggregates[0]);
}

static void print_rows(FILE *out, const struct shape *s)
{
	if (s->kind != DISTINCT_ROWS)
		print_order_methods(out, s);
	fprintf(out, ".Select(%s => ", s->kind != GROUPS ? "x" : s->regrouping.key ? "h" : "g");
	print_columns(out, s);
	fputc(')', out);
	if (s->kind == DISTINCT_ROWS || s->distinct)
		fputs(".Distinct()", out);
	if (s->kind == DISTINCT_ROWS)
		print_order_methods(out, s);
	print_cut(out, s, ".Skip(", ".Take(", ")");
	if (s->folds)
		print_fold(out, s);
}

static void print_methods(FILE *out, const struct shape *s, const char *source)
{
	print_source(out, s, source);
	if (s->kind == GROUPS || s->kind == CLUSTERS)
		print_group_methods(out, s);
	if (s->kind == VALUE)
		print_value(out, s);
	else if (s->kind == CLUSTERS)
		print_kmeans(out, s);
	else
		print_rows(out, s);
}

char *text_of_shape(const struct shape *s, const char *source)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	if (s->by_methods)
		print_methods(out, s, source);
	else
		print_comprehension(out, s, source);
	fclose(out);
	return text;
}
