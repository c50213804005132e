/* SPDX-License-Identifier: MIT */
/*
 * Between the files that make native probes of a plan. What they offer is fay_plan_generate() and
 * fay_plan_generate_kernel() of fay/query.h.
 */
#ifndef FAY_QUERY_EMIT_NATIVE_NATIVE_PRIVATE_H
#define FAY_QUERY_EMIT_NATIVE_NATIVE_PRIVATE_H

#include "query/emit/probe/probe.h"

/* Links in the bitcode of what is called (query/runtime/), and the query's functions of C. */
int fay_codegen_link(struct fay_codegen *g, struct fay_error *error);

#endif
