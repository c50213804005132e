/* SPDX-License-Identifier: MIT */
#include "shapes.h"

#include "fay/sketch.h"

#define ROW_BYTES 4096 /* that a row may have */
#define CLUSTERS_MAX 5

/* --- aggregates --- */

static const unsigned operand_types[KINDS] = {
	[COUNT_IF] = OF(BOOL),      [SUM] = OF(INT),         [MIN] = OF(INT) | OF(TIME),
	[MAX] = OF(INT) | OF(TIME), [FIRST] = OF_WORDS,      [LAST] = OF_WORDS,
	[AVERAGE] = OF(INT),        [ANY] = OF(BOOL),        [ALL] = OF(BOOL),
	[STDDEV] = OF(INT),         [TOP] = OF_WORDS,        [HISTOGRAM] = OF(INT),
	[QUANTILE] = OF(INT),       [DISTINCT] = OF_ANYTHING
};

/* `types`: that an operand may have where the kind allows it. */
static struct aggregate random_aggregate(enum kind kind, unsigned types)
{
	struct aggregate a = { .kind = kind };
	bool few = (kind == TOP || kind == DISTINCT) && below(3) == 0;
	a.k = below(8) ? 1 + below(8) : 60; /* three in a row have room */
	a.percent = below(3) ? (unsigned[]){ 0, 50, 90, 99, 100 }[below(5)] : below(101);
	a.has_operand = kind != COUNT && (kind != ANY || below(3));
	if (a.has_operand)
		a.operand = random_scalar(operand_types[kind] & (IS_TEST(kind) ? OF(BOOL) : types),
					  few);
	return a;
}

static void free_aggregate(struct aggregate *a)
{
	free_scalar(&a->operand);
	free_tree(a->condition);
}

/* Bytes of its columns in a row; no less than there are. */
static size_t size_of(const struct aggregate *a)
{
	switch (a->kind) {
	case TOP: return sizeof(struct fay_top) + a->k * sizeof(struct fay_pair);
	case HISTOGRAM: return 8 * FAY_HIST_LOG2_BUCKETS;
	case QUANTILE: return sizeof(struct fay_quantiles);
	case DISTINCT: return sizeof(struct fay_distinct);
	case STDDEV: return 7 * 8;
	default: return 2 * 8;
	}
}

static size_t size_of_keys(const struct shape *s)
{
	size_t size = 8 + 8; /* the row's mark, and a window */
	for (unsigned i = 0; i < s->key_count; i++)
		size += s->keys[i].type == STACK  ? (s->keys[i].form ? 8 * s->keys[i].form : 128)
			: s->keys[i].type == NAME ? 16
						  : 8;
	return size;
}

/* A whole stream has so many different values that how far estimates are off can be seen. */
static enum kind random_kind(bool of_whole, bool integers)
{
	if (of_whole && below(4) == 0)
		return DISTINCT;
	return below(integers ? LAST + 1u : KINDS);
}

static void random_aggregates(struct shape *s)
{
	size_t size = size_of_keys(s);
	for (unsigned i = 0; i < s->aggregate_count; i++) {
		struct aggregate *a = &s->aggregates[i];
		bool integers = s->kind == GROUPS && i < 2 && below(2);
		*a = random_aggregate(random_kind(s->kind == VALUE, integers),
				      integers   ? OF(INT)
				      : s->every ? OF_KEYS
						 : OF_ANYTHING);
		if (s->kind == GROUPS && below(4) == 0)
			a->condition = random_tree(true, 1);
		if (size + size_of(a) + 3 * 16 > ROW_BYTES) {
			free_aggregate(a);
			*a = (struct aggregate){ .kind = COUNT };
		}
		size += size_of(a);
	}
}

/* The operand of aggregate 0 becomes the groups' element, so that no other aggregate can look at
 * the event. */
static void project(struct shape *s)
{
	const struct aggregate *first = &s->aggregates[0];
	s->projects = first->has_operand && !IS_TEST(first->kind) && !first->condition &&
		      first->operand.type != MODULE && below(4) == 0;
	for (unsigned i = 1; i < s->aggregate_count && s->projects; i++) {
		free_aggregate(&s->aggregates[i]);
		s->aggregates[i] = (struct aggregate){ .kind = i == 2 ? ANY : COUNT };
	}
}

/* --- what is done with groups --- */

/* An aggregate's value is a number that can be computed with, known exactly. */
static bool is_integer(const struct aggregate *a)
{
	return GIVES_INTEGER(a->kind) &&
	       (!a->has_operand || a->operand.type == INT || a->kind == COUNT_IF);
}

static bool is_number(const struct aggregate *a)
{
	return is_integer(a) || a->kind == AVERAGE || a->kind == STDDEV;
}

static void random_computing(struct shape *s)
{
	const struct aggregate *a = s->aggregates;
	bool integers = is_integer(&a[0]) && is_integer(&a[1]);
	s->has_condition =
		(is_integer(&a[0]) || a[0].kind == AVERAGE || IS_BOOL(a[0].kind)) && below(3) == 0;
	s->limit = below(2) ? below(5) : interesting();
	s->computes = s->aggregate_count > 1 && is_number(&a[0]) && is_number(&a[1]) && below(2);
	s->as_real = s->computes && (!integers || below(3) == 0);
	s->operator= "+-*/"[below(4)];
}

static void random_regrouping(struct shape *s)
{
	static const enum kind kinds[] = { COUNT,   COUNT_IF, SUM, MIN,   MAX,
					   AVERAGE, ANY,      ALL, FIRST, LAST };
	if (!is_integer(&s->aggregates[0]) || s->key_count != 1 || below(3))
		return;
	s->computes = false;
	s->regrouping.key = BY_AGGREGATE + below(4);
	for (unsigned i = 0; i < 2; i++)
		s->regrouping.kinds[i] = kinds[below(10)];
	s->regrouping.order = below(2) ? NOT_ORDERED : ORDERED + below(2);
}

/* Whether it can be known which rows are equal: lists cannot be compared, and of estimates, or what
 * is rounded, a reference does not know it. */
static bool can_compare(const struct shape *s)
{
	for (unsigned i = 0; i < s->aggregate_count; i++)
		if (s->aggregates[i].kind >= STDDEV)
			return false;
	return true;
}

static void random_fold(struct shape *s)
{
	static const enum kind
		of_integers[] = { COUNT, COUNT_IF, SUM, MIN, MAX, AVERAGE, ANY, ALL },
		of_reals[] = { COUNT, MIN, MAX };
	const struct aggregate *a = &s->aggregates[0];
	bool integer = s->kind == DISTINCT_ROWS ? s->keys[0].type == INT
		       : s->regrouping.key      ? GIVES_INTEGER(s->regrouping.kinds[0])
						: is_integer(a);
	bool real = s->kind == GROUPS &&
		    (s->regrouping.key ? s->regrouping.kinds[0] == AVERAGE : is_number(a));
	s->folds = below(4) == 0;
	s->fold = integer ? of_integers[below(8)] : real ? of_reals[below(3)] : COUNT;
}

static bool is_estimate(const struct shape *s, unsigned column)
{
	if (s->regrouping.key || column < s->key_count)
		return false;
	enum kind kind = s->aggregates[column - s->key_count].kind;
	return kind == QUANTILE || kind == DISTINCT;
}

/* Which columns rows can be ordered by. */
static bool can_order(const struct shape *s, unsigned column)
{
	if (s->regrouping.key)
		return column || s->regrouping.key != BY_KEY || s->keys[0].type != STACK;
	if (column < s->key_count)
		return s->keys[column].type != STACK;
	enum kind kind = s->aggregates[column - s->key_count].kind;
	return kind != TOP && kind != HISTOGRAM;
}

static void random_orders(struct shape *s)
{
	unsigned columns = s->regrouping.key ? 3 : s->key_count + s->aggregate_count;
	for (unsigned wanted = below(3); wanted; wanted--) {
		unsigned column = below(columns);
		if (!can_order(s, column))
			continue;
		s->loosely |= is_estimate(s, column);
		s->orders[s->order_count].column = column;
		s->orders[s->order_count++].descending = below(2);
	}
}

/* --- whole queries --- */

static void random_windows(struct shape *s)
{
	if (below(2)) {
		s->step = (1 + below(4)) * MS;
		s->width = s->step * (1 + below(2) * below(4));
	} else if (below(3) == 0) {
		s->every = 1 + below(below(2) ? 8 : 60);
		s->before = below(s->filter_count + 1);
	}
}

static void random_keys(struct shape *s)
{
	s->key_count = s->kind == VALUE                         ? 0
		       : s->kind == ROWS || s->kind == CLUSTERS ? 2
								: 1 + below(2);
	for (unsigned i = 0; i < s->key_count; i++)
		s->keys[i] = random_scalar(s->kind == CLUSTERS ? OF_KEYS & ~OF(STACK) : OF_KEYS,
					   s->kind != ROWS);
}

/* Vectors of small numbers: what is near to what does not hang on rounding. */
static void random_clusters(struct shape *s)
{
	s->clusters = 1 + below(CLUSTERS_MAX);
	s->aggregate_count = 1;
	s->aggregates[0] = random_aggregate(below(2) ? COUNT : COUNT_IF, OF(BOOL));
	s->by_methods = true;
}

void random_shape(struct shape *s)
{
	unsigned choice = below(20);
	memset(s, 0, sizeof(*s));
	s->kind = choice < 4    ? VALUE
		  : choice < 14 ? GROUPS
		  : choice < 17 ? ROWS
		  : choice < 19 ? DISTINCT_ROWS
				: CLUSTERS;
	s->skip = s->take = -1;
	s->filter_count = below(3);
	for (unsigned i = 0; i < s->filter_count; i++)
		s->filters[i] = random_tree(true, 2);
	if (s->kind != ROWS && s->kind != CLUSTERS)
		random_windows(s);
	random_keys(s);
	s->lets = below(3) == 0;
	s->by_methods = below(3) == 0;
	if (s->kind == CLUSTERS) {
		random_clusters(s);
		return;
	}
	s->aggregate_count = s->kind == VALUE ? 1 : s->kind == GROUPS ? 1 + below(3) : 0;
	random_aggregates(s);
	if (s->aggregate_count)
		project(s);
	if (s->kind == VALUE)
		return;
	if (s->kind == GROUPS) {
		random_computing(s);
		random_regrouping(s);
		s->distinct = can_compare(s) && below(5) == 0 && !s->regrouping.key;
	}
	random_orders(s);
	if (s->loosely)
		return;
	s->skip = below(4) ? -1 : (int64_t)below(6);
	s->take = below(3) ? -1 : (int64_t)below(12);
	if (s->kind != ROWS)
		random_fold(s);
}

void free_shape(struct shape *s)
{
	for (unsigned i = 0; i < 2; i++) {
		free_tree(s->filters[i]);
		free_scalar(&s->keys[i]);
	}
	for (unsigned i = 0; i < s->aggregate_count; i++)
		free_aggregate(&s->aggregates[i]);
}
