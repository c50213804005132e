/* SPDX-License-Identifier: MIT */
#include "join_shapes.h"

static const struct {
	const char *left, *right;
} join_keys[] = { { "a.tid", "b.tid" },
		  { "a.Arg(0) & 3", "b.cpu % 3" },
		  { "a.comm", "b.comm" },
		  { "new { a.function, k = a.tid % 2 }", "new { b.function, k = b.tid % 2 }" },
		  { "7", "7" },
		  { "a.cpu > 20", "b.cpu > 20" } };

/* --- making them up --- */

static struct expression random_expression(bool is_bool, unsigned depth)
{
	return (struct expression){ (enum of)below(3), random_tree(is_bool, depth) };
}

void random_join(struct shape *s)
{
	static const uint64_t apart[] = { 0, 1, 20, 300, 5000, INT64_MAX };
	memset(s, 0, sizeof(*s));
	s->kind = below(3);
	s->key = below(sizeof(join_keys) / sizeof(join_keys[0]));
	s->within = apart[below(6)];
	s->before = below(3) ? NULL : random_tree(true, 2);
	s->filter_count = below(4);
	for (unsigned i = 0; i < s->filter_count; i++)
		s->filters[i] = random_expression(true, 2);
	s->aggregate_count = s->kind == VALUE ? 1 : s->kind == GROUPS ? 1 + below(3) : 0;
	for (unsigned i = 0; i < s->aggregate_count; i++) {
		struct aggregate *a = &s->aggregates[i];
		/* A row has room for one of the large ones, or for several of those of a middle
		 * size. */
		a->kind = (enum kind)below(i == 0                         ? KINDS
					   : s->aggregates[0].kind >= TOP ? TOP
									  : QUANTILE);
		a->k = 1 + below(8);
		a->percent = below(101);
		if (a->kind != COUNT)
			a->operand = random_expression(IS_TEST(a->kind), 2);
	}
	if (s->kind == GROUPS)
		s->group_key = random_expression(below(2), 1);
	for (unsigned i = 0; i < 2 && s->kind == ROWS; i++)
		s->columns[i] = random_expression(false, 2);
}

void free_join(struct shape *s)
{
	free_tree(s->before);
	free_tree(s->group_key.tree);
	for (unsigned i = 0; i < 3; i++) {
		free_tree(s->filters[i].tree);
		free_tree(s->aggregates[i].operand.tree);
	}
	for (unsigned i = 0; i < 2; i++)
		free_tree(s->columns[i].tree);
}

/* --- as text --- */

/* Whether what stands behind `x.` is the left event's in an expression of both. */
static bool is_left(const char *name)
{
	static const char *const lefts[] = { "Arg(0)", "Arg(2)",   "Arg(4)", "tid",
					     "pid",    "function", "time" };
	for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++)
		if (!strncmp(name, lefts[i], strlen(lefts[i])))
			return true;
	return false;
}

/* Trees are of an event `x`: here of `a` and `b`, members of what `prefix` names. */
static void print_expression(FILE *out, const char *prefix, const struct expression *e)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	assert_non_null(memory);
	print_tree(memory, e->tree);
	fclose(memory);
	for (const char *c = text; *c; c++) {
		bool event = c[0] == 'x' && c[1] == '.' && (c == text || strchr(" (!~", c[-1]));
		if (event)
			fprintf(out, "%s%c", prefix,
				e->of == LEFT || (e->of == BOTH && is_left(c + 2)) ? 'a' : 'b');
		else
			fputc(*c, out);
	}
	free(text);
}

static void print_aggregate(FILE *out, const char *of, const struct aggregate *a)
{
	fprintf(out, "%s.%s(", of, aggregate_names[a->kind]);
	if (a->kind == TOP)
		fprintf(out, "%u, ", a->k);
	if (a->kind == QUANTILE)
		fprintf(out, "0.%02u, ", a->percent % 100);
	if (a->operand.tree) {
		fputs("x => ", out);
		print_expression(out, "x.", &a->operand);
	}
	fputc(')', out);
}

static void print_result(FILE *out, const struct shape *s)
{
	if (s->kind == VALUE) {
		fputs(" select new { a, b })", out);
		print_aggregate(out, "", &s->aggregates[0]);
		return;
	}
	if (s->kind == ROWS) {
		fputs(" select new { c0 = ", out);
		print_expression(out, "", &s->columns[0]);
		fputs(", c1 = ", out);
		print_expression(out, "", &s->columns[1]);
		fputs(" }", out);
		return;
	}
	fputs(" group new { a, b } by ", out);
	print_expression(out, "", &s->group_key);
	fputs(" into g select new { k = g.Key", out);
	for (unsigned i = 0; i < s->aggregate_count; i++) {
		fprintf(out, ", a%u = ", i);
		print_aggregate(out, "g", &s->aggregates[i]);
	}
	fputs(" }", out);
}

char *text_of_join(const struct shape *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	fprintf(out, "%sfrom a in cluster.Function(\"a!b\")", s->kind == VALUE ? "(" : "");
	if (s->before) {
		fputs(" where ", out);
		print_expression(out, "", &(struct expression){ LEFT, s->before });
	}
	fprintf(out, " join b in cluster.Function(\"c!d\") on %s equals %s within %llu",
		join_keys[s->key].left, join_keys[s->key].right, (unsigned long long)s->within);
	for (unsigned i = 0; i < s->filter_count; i++) {
		fputs(" where ", out);
		print_expression(out, "", &s->filters[i]);
	}
	print_result(out, s);
	fclose(out);
	return text;
}
