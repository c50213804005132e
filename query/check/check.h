/* SPDX-License-Identifier: MIT */
/*
 * The checker: what a query's text means. Names are looked up, every expression has a type, and
 * what is left is what struct fay_checked says (query/values/).
 */
#ifndef FAY_QUERY_CHECK_CHECK_H
#define FAY_QUERY_CHECK_CHECK_H

#include "query/values/values.h"

/* Fills *checked, whose `exprs.query` is set; false with the error recorded. */
bool fay_query_check(struct fay_checked *checked, const struct fay_node *root);

#endif
