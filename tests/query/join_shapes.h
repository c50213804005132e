/* SPDX-License-Identifier: MIT */
/* Joins made up at random, as structures (test_join.c evaluates them) and as text. */
#ifndef FAY_TESTS_QUERY_JOIN_SHAPES_H
#define FAY_TESTS_QUERY_JOIN_SHAPES_H

#include "tests/query/reference/summaries.h"
#include "tests/query/reference/trees.h"

/* A random expression in which each field is of the left event, of the right one, or of one of
 * them. */
enum of { LEFT, RIGHT, BOTH };
struct expression {
	enum of of;
	struct tree *tree;
};

struct aggregate {
	enum kind kind;
	unsigned k, percent;       /* TOP, QUANTILE */
	struct expression operand; /* tree NULL: COUNT */
};

struct shape {
	enum { VALUE, GROUPS, ROWS } kind;
	unsigned filter_count, aggregate_count, key; /* key: of the join, an index of join_keys */
	struct expression filters[3], group_key, columns[2];
	struct tree *before; /* condition on the left events, before the join; or NULL */
	struct aggregate aggregates[3];
	uint64_t within;
};

void random_join(struct shape *s);
void free_join(struct shape *s);
/* The query; the caller's to free. */
char *text_of_join(const struct shape *s);

#endif
