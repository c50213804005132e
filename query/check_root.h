/* SPDX-License-Identifier: MIT */
/*
 * Checking of what is left to the root: see root.h. Called by check_sequence.c.
 */
#ifndef FAY_QUERY_CHECK_ROOT_H
#define FAY_QUERY_CHECK_ROOT_H

#include "check.h"

/* Whether a condition must wait for the merged rows: it looks at aggregates, or comes after rows
 * were chosen. */
bool fay_check_at_root(const struct fay_checked *checked, const struct fay_expr *condition);
bool fay_check_root_filter(struct fay_checked *checked, const struct fay_expr *condition);
/* One more key of an order; `then`: the order is there already. */
bool fay_check_order(struct fay_checked *checked, const struct fay_node *node,
		     const struct fay_value_node *key, bool descending, bool then);
/* Take(n), Skip(n) */
bool fay_check_window(struct fay_checked *checked, const struct fay_node *node,
		      const struct fay_value_node *count, bool take);
/* Distinct() of grouped rows: those of equal elements are one. */
bool fay_check_distinct(struct fay_checked *checked, struct fay_span span,
			const struct fay_value_node *element);
/* KMeans(k, vector, dimension, value) of rows of groups: what a row is then, with its cluster.
 * `parts` are what the three lambdas of `call` gave. */
struct fay_value_node *fay_check_kmeans(struct fay_checked *checked, const struct fay_node *call,
					const struct fay_expr *k,
					struct fay_value_node *const parts[3]);
/* An aggregate over the rows of groups; `operand` NULL: their number. */
struct fay_value_node *fay_check_fold(struct fay_checked *checked, struct fay_span span,
				      const char *text, enum fay_merge merge,
				      const struct fay_expr *operand);
/* The lists to which the next key, the next operation of the root go: of the last grouping. */
struct fay_key **fay_check_keys(struct fay_checked *checked);
/* Groups are grouped once more: keys and operations that follow are of that grouping. */
bool fay_check_regroup(struct fay_checked *checked, struct fay_span span);
/* Number of the last grouping, from 1 up; 1 if there is none yet. */
static inline unsigned fay_check_level(const struct fay_checked *checked)
{
	return checked->regroup_count + 1;
}
/* Nothing but the root may follow what was said there: false with the error recorded if something
 * was. */
bool fay_check_before_root(struct fay_checked *checked, struct fay_span span, const char *what);

#endif
