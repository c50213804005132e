/* SPDX-License-Identifier: MIT */
/*
 * The summaries of fay/sketch.h as functions that generated probes call: compiled to LLVM bitcode
 * when Fay is built, linked into a query's module, guarded, inlined and verified with it.
 */
#include "fay/sketch.h"

void fay_query_quantile(struct fay_quantiles *column, uint64_t x)
{
	fay_quantiles(column, (int64_t)x);
}

void fay_query_distinct(struct fay_distinct *column, uint64_t x)
{
	fay_distinct(column, x);
}

void fay_query_top(struct fay_top *column, uint64_t x, uint64_t k)
{
	fay_top_add(column, (struct fay_pair *)(column + 1), (unsigned)k, x);
}

void fay_query_first(struct fay_at_time *column, uint64_t x, uint64_t time)
{
	fay_first(column, time, x);
}

void fay_query_last(struct fay_at_time *column, uint64_t x, uint64_t time)
{
	fay_last(column, time, x);
}
