/* SPDX-License-Identifier: MIT */
/* Random queries: what they ask, as data for a reference and as text. */
#ifndef FAY_TESTS_QUERY_SHAPES_H
#define FAY_TESTS_QUERY_SHAPES_H

#include "tests/query/reference/scalars.h"
#include "tests/query/reference/summaries.h"

#define MS UINT64_C(1000000)

struct aggregate {
	enum kind kind;
	unsigned k, percent; /* TOP: how many values are kept; QUANTILE */
	bool has_operand;    /* not of COUNT, and ANY may do without */
	struct scalar operand;
	struct tree *condition; /* which of the group's events take part; NULL: all */
};

/* Groups of groups: what the second grouping goes by, and two aggregates over the groups' aggregate
 * 0. */
struct regrouping {
	enum { NOT_REGROUPED, BY_AGGREGATE, BY_REST, BY_KEY, ALL_TOGETHER } key;
	enum kind kinds[2];
	/* that the groups have before, by aggregate 0 */
	enum { NOT_ORDERED, ORDERED, DESCENDING } order;
};

struct shape {
	/* DISTINCT_ROWS: the keys alone, each once. CLUSTERS: key 0 tells vectors apart, key 1
	 * their values, aggregate 0 is the value */
	enum { VALUE, GROUPS, ROWS, DISTINCT_ROWS, CLUSTERS } kind;
	unsigned without; /* events with one of these flags take no part */
	unsigned filter_count, key_count, aggregate_count, order_count;
	struct tree *filters[2];
	struct scalar keys[2]; /* of ROWS: the columns */
	struct aggregate aggregates[3];
	uint64_t width, step;
	unsigned every;     /* windows of so many events; 0: none, or of time */
	unsigned before;    /* so many of the filters stand before the window */
	bool has_condition; /* aggregate 0 above `limit`; of ANY and ALL: true */
	int64_t limit;
	struct regrouping regrouping;
	bool computes, as_real; /* a column of aggregate 0 with aggregate 1, of 1.0 * aggregate 0 */
	char operator;
	struct {
		unsigned column;
		bool descending;
		/* column: keys, then aggregates; of groups of groups the key, then its aggregates
		 * */
	} orders[2];
	/* ordered by an estimate: which rows come first only the result knows */
	bool loosely;
	int64_t skip, take; /* -1: not there */
	bool distinct;      /* GROUPS: shown without keys, equal rows once */
	bool folds;         /* the rows become one value, of the column that folded_column() says */
	enum kind fold;
	unsigned clusters;
	/* How it is written; all mean the same. */
	/* projects: the element is the operand of aggregate 0, which then is the only one that has
	 * an operand */
	bool by_methods, lets, projects;
};

static inline bool has_windows(const struct shape *s)
{
	return s->step || s->every;
}
/* The first column that is shown, behind the window. */
static inline unsigned first_shown(const struct shape *s)
{
	return s->distinct ? s->key_count : 0;
}
/* Of groups the first aggregate, of distinct rows the first one. */
static inline unsigned folded_column(const struct shape *s)
{
	return s->kind == DISTINCT_ROWS ? 0 : s->regrouping.key ? 1 : s->key_count;
}
/* Over what events_have. */
void random_shape(struct shape *s);
void free_shape(struct shape *s);
/* The query over `source`; malloc'ed. */
char *text_of_shape(const struct shape *s, const char *source);

#endif
