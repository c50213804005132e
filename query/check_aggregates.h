/* SPDX-License-Identifier: MIT */
/*
 * Checking of aggregates, of a group or of the whole query.
 */
#ifndef FAY_QUERY_CHECK_AGGREGATES_H
#define FAY_QUERY_CHECK_AGGREGATES_H

#include "check.h"

/* By name, or NULL. */
const struct fay_aggregate_kind *fay_check_aggregate_kind(const char *name);
struct fay_value_node *fay_check_aggregate(struct fay_checked *checked,
					   const struct fay_scope *scope,
					   const struct fay_node *call,
					   const struct fay_value_node *on,
					   const struct fay_aggregate_kind *kind);

#endif
