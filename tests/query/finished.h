/* SPDX-License-Identifier: MIT */
/* Queries with a root, run over known events and finished. */
#ifndef FAY_TESTS_QUERY_FINISHED_H
#define FAY_TESTS_QUERY_FINISHED_H

#include "running.h"

#include <math.h>

#define EVENTS 4000
#define KEYS 40

extern struct fay_event events[EVENTS];
/* A cmocka set-up: the events, and the JIT. */
int make_events(void **state);

/* Names of functions: none is known. */
const char *name_of(void *context, uint64_t hash);

/* The finished result of a query over all events. */
struct answer {
	struct running running;
	struct fay_result result;
};
void run_query(struct answer *a, const char *text);
void end_query(struct answer *a);
/* The value of column `name` in row `row` as a double; NAN: none. */
double get(const struct answer *a, size_t row, const char *name);

#endif
