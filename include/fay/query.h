/* SPDX-License-Identifier: MIT */
/*
 * FayLINQ: text to a typed plan, and the plan's probe stage to LLVM IR.
 */
#ifndef FAY_QUERY_H
#define FAY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fay/compiler.h"
#include "fay/error.h"

/* A column of the result, in the order of the query's select. Values come from state 0 of the image. */
struct fay_plan_column {
	const char *name;
	enum { FAY_PLAN_KEY, FAY_PLAN_VALUE } source;
	uint32_t index;               /* of the key or value column in the state */
	enum fay_column_type type;
	enum fay_merge merge;
};

struct fay_plan {
	const char *text;             /* the query */
	const char *pattern;          /* "module!function" */
	bool streams;                 /* rows are events, not groups (no aggregation) */
	bool scalar;                  /* one row without keys (Count() and the like) */
	uint64_t deadline;            /* ns since the epoch after which no event can pass `where`; 0: none */
	struct fay_image_spec spec;   /* for fay_compile_module(); strings owned by the plan */
	struct fay_plan_column *columns;
	uint32_t column_count;
	void *private_plan;
};

/*
 * Parses, types and plans. `now` is what `Now` means, in ns since the epoch. An error's message has the form
 *
 *   query:2:10: unknown field `tme` of event `io`; did you mean `time`?
 *       where io.tme < Now.AddMinutes(5)
 *                ^~~
 */
int fay_query_plan(const char *text, uint64_t now, struct fay_plan **plan, struct fay_error *error);
void fay_plan_destroy(struct fay_plan *plan);
/* The probe stage as a module in `context`, for fay_compile_module() with plan->spec. */
int fay_plan_generate(const struct fay_plan *plan, LLVMContextRef context, LLVMModuleRef *module, struct fay_error *error);
/* `fay explain`: what each tier does: probe, process, machine, cluster. */
void fay_plan_print(FILE *out, const struct fay_plan *plan);
void fay_plan_print_json(FILE *out, const struct fay_plan *plan);

#endif
