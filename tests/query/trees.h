/* SPDX-License-Identifier: MIT */
/* Random expressions over random events: written as FayLINQ, and evaluated by a reference that shares no code with query/. */
#ifndef FAY_TESTS_QUERY_TREES_H
#define FAY_TESTS_QUERY_TREES_H

#include <stdio.h>

#include "fay/event.h"

extern uint64_t random_state; /* the seed; not 0 */

uint64_t random_word(void);
unsigned below(unsigned n);
int64_t interesting(void); /* small numbers, extremes, any */
void random_event(struct fay_event *event);

/* A random expression: its operator, operands, and for leaves what to read. */
struct tree {
	char op[4]; /* "a": argument, "f": field, "k": constant, "t": time, "s": string test, "?" */
	bool is_bool;
	unsigned index;
	int64_t constant;
	struct tree *a, *b, *c;
};

struct tree *random_tree(bool is_bool, unsigned depth);
void free_tree(struct tree *t);
void print_tree(FILE *out, const struct tree *t); /* the event is `x` */
int64_t evaluate(const struct tree *t, const struct fay_event *e);

#endif
