/* SPDX-License-Identifier: MIT */
/* Random queries: what they ask, as data for a reference and as text. */
#ifndef FAY_TESTS_QUERY_SHAPES_H
#define FAY_TESTS_QUERY_SHAPES_H

#include "cells.h"
#include "trees.h"

#define MS UINT64_C(1000000)

struct aggregate {
	enum kind kind;
	unsigned k;           /* TOP: how many values are kept */
	struct tree *operand; /* NULL: COUNT */
};

enum key_kind { KEY_TID, KEY_CPU, KEY_COMM, KEY_FUNCTION, KEY_ARG, KEY_TEST, KEY_KINDS };

struct shape {
	enum { VALUE, GROUPS, ROWS } kind;
	unsigned filter_count, key_count, aggregate_count, order_count;
	struct tree *filters[2], *columns[2]; /* columns of ROWS */
	struct {
		enum key_kind kind;
		struct tree *tree;
	} keys[2];
	struct aggregate aggregates[3];
	uint64_t width, step;
	unsigned every; /* windows of so many events; 0: none, or of time */
	unsigned before; /* so many of the filters stand before the window */
	bool computes, has_condition;
	bool regroups; /* the groups are grouped by `regroup_key`; `kinds` of aggregate 0 of each */
	enum { BY_AGGREGATE, BY_REST, BY_KEY, ALL_TOGETHER } regroup_key;
	enum kind kinds[2];
	enum { NOT_ORDERED, ORDERED, DESCENDING } inner_order; /* of the groups that are grouped, by aggregate 0 */
	char operator; /* computed column: aggregate 0 with aggregate 1 */
	int64_t limit; /* condition: aggregate 0 above this */
	struct {
		unsigned column;
		bool descending;
	} orders[2];        /* column: keys, then aggregates; of ROWS: columns */
	int64_t skip, take; /* -1: not there */
};

static inline bool has_windows(const struct shape *s)
{
	return s->step || s->every;
}
void random_shape(struct shape *s);
void free_shape(struct shape *s);
/* The query over `source`; malloc'ed. */
char *text_of_shape(const struct shape *s, const char *source);

#endif
