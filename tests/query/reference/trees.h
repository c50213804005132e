/* SPDX-License-Identifier: MIT */
/* Random expressions over random events: written as FayLINQ, and evaluated by a reference that
 * shares no code with query/. */
#ifndef FAY_TESTS_QUERY_TREES_H
#define FAY_TESTS_QUERY_TREES_H

#include <stdbool.h>
#include <stdio.h>

#include "fay/event.h"

extern uint64_t random_state; /* the seed; not 0 */

uint64_t random_word(void);
unsigned below(unsigned n);
int64_t interesting(void); /* small numbers, extremes, any */
void random_event(struct fay_event *event);

/* What the events of a source have beside pid, tid, cpu, comm and function; what random expressions
 * look at. */
enum {
	HAS_ARGUMENTS = 1 << 0,
	HAS_TIME = 1 << 1, /* that a reference can know */
	HAS_CYCLES = 1 << 2,
	HAS_MODULE = 1 << 3,
	HAS_RESULT = 1 << 4, /* ReturnValue */
	HAS_FAILED = 1 << 5,
	HAS_DURATION = 1 << 6,
	HAS_CALLER = 1 << 7, /* of a program's function */
	HAS_STACK = 1 << 8,
};
#define HAS_ALWAYS (HAS_TIME | HAS_CYCLES | HAS_MODULE)
extern unsigned events_have; /* at first arguments and HAS_ALWAYS */

/* Of a made-up event, in `reserved`, which no query can name. */
#define EVENT_FAILED 1u /* the call ended by an exception, or with an error */
/* The frames of its stack, innermost first, zeros behind the last one; likewise where no query
 * looks. */
#define EVENT_FRAMES 5u
static inline const uint64_t *event_frames(const struct fay_event *event)
{
	return event->reg + 8;
}

/* A random expression: its operator, operands, and for leaves what to read. */
struct tree {
	/* "a": argument, "f": field, "k": constant, "t": time, "s": string test, "n": since Now,
	 * "r": of the end, "x": failed, "?" */
	char op[4];
	unsigned index;
	int64_t constant;
	struct tree *a, *b, *c;
};

struct tree *random_tree(bool is_bool, unsigned depth);
/* Of few values, so that events share them. */
struct tree *random_category(void);
void free_tree(struct tree *t);
void print_tree(FILE *out, const struct tree *t); /* the event is `x` */
int64_t evaluate(const struct tree *t, const struct fay_event *e);

#endif
