/* SPDX-License-Identifier: MIT */
/*
 * Joins: `join b in SOURCE on KEY equals KEY within DURATION`, and `.. into g`. Each side is
 * checked as a source of its own; what the pairs see of it is marked by EXPR_SIDE, and a condition
 * on one side alone goes into that side's filters: its probe leaves early.
 */
#ifndef FAY_QUERY_CHECK_JOIN_H
#define FAY_QUERY_CHECK_JOIN_H

#include "check.h"
#include "fay/join.h"

/* What struct fay_checked says about one source. */
struct fay_check_source {
	const char *pattern, *event_name;
	enum fay_source kind;
	enum fay_domain domain;
	struct fay_span span;
	struct fay_kernel_source *kernel;
	struct fay_function_source *function;
	bool uses_failed, uses_end, uses_duration, saved_kernel;
	struct fay_filter *filters;
	struct fay_saved *saved;
};

struct fay_join_key {
	/* of one type; of a source as its probe computes it, of pairs as they see it */
	const struct fay_expr *sides[2];
	struct fay_join_key *next;
};

struct fay_check_join {
	/* of the pairs (with the first one's kind and domain), and each by itself from 1 on */
	struct fay_check_source sources[FAY_JOIN_SOURCES + 1];
	unsigned source_count;
	unsigned active; /* the one that lies in struct fay_checked */
	/* One for each join: of what is there and the next source. */
	struct fay_check_step {
		struct fay_join_key *keys;
		uint32_t key_count;
		uint64_t within; /* ns */
	} steps[FAY_JOIN_SOURCES - 1];
	const char *names[FAY_JOIN_SOURCES]; /* of the events */
	const char *into; /* the last join makes groups, and this is their name; NULL: pairs */
};

/* The clause's effect on what is known: the new scope, or NULL with the error recorded. *sequence
 * becomes that of the pairs. */
const struct fay_scope *fay_check_join(struct fay_checked *checked, const struct fay_scope *outer,
				       const struct fay_scope *scope,
				       const struct fay_clause *clause,
				       struct fay_value_node **sequence);
/*
 * Between these, `checked` speaks of the source of an event of `side` (from 1 on; 0: nothing
 * changes). leave() returns `value`, an expression over that event, as the pairs see it.
 */
unsigned fay_check_enter_side(struct fay_checked *checked, unsigned side);
struct fay_value_node *fay_check_leave_side(struct fay_checked *checked, unsigned outside,
					    struct fay_value_node *value);
/* A condition (EXPR_SIDE) on events of one side. */
bool fay_check_side_filter(struct fay_checked *checked, const struct fay_expr *condition);

#endif
