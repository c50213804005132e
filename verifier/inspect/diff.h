/* SPDX-License-Identifier: MIT */
/*
 * How a version of an image differs from the one before: what it can do that the old one could not,
 * and which functions changed.
 *
 * Some things are the compiler's choice: instructions, stack, rounds of a loop, registers, CPU
 * features. They grow from one optimisation level to the next while the probe stays what it was. So
 * they are told, but only numbers that grow beyond `factor` are called a grown capability; with
 * factor 1, everything that grows.
 */
#ifndef FAY_VERIFIER_DIFF_H
#define FAY_VERIFIER_DIFF_H

#include "inspect.h"

#define FAY_DIFF_FACTOR 16u
#define FAY_DIFF_SLACK 256u /* what a number may grow in any case, unless the factor is 1 */

struct fay_change {
	bool grew;
	const char *kind;  /* "probe" ... */
	const char *where; /* the probe or state; "" */
	const char *before, *after;
};

enum fay_function_change { FAY_FUNCTION_NEW, FAY_FUNCTION_GONE, FAY_FUNCTION_CHANGED };

struct fay_diff {
	const struct fay_inspected *old, *new; /* both have tables */
	uint64_t factor;
	bool grew, failed; /* failed: out of memory */
	uint32_t change_count, change_room;
	struct fay_change *changes;
	uint32_t function_count;
	struct fay_changed_function {
		const char *name;
		enum fay_function_change change;
	} *functions;
};

/* Adds a change; texts are in the arena of the new version's run. `grew` is for this change. */
void fay_diff_add(struct fay_diff *d, bool grew, const char *kind, const char *where,
		  const char *before, const char *after);
void fay_diff_probes(struct fay_diff *d);
void fay_diff_states(struct fay_diff *d);
void fay_diff_functions(struct fay_diff *d);

void fay_diff_print(FILE *out, const char *old, const char *new, const struct fay_diff *d);
/* One object on one line: docs/cli-json.md. */
void fay_diff_print_json(FILE *out, const char *old, const char *new, const struct fay_diff *d);

#endif
