/* SPDX-License-Identifier: MIT */
/* Events, or pairs of events, of saved traces that two sessions made of the same calls: what
 * saved_reference.c computes with. A mistake ends the process. */
#ifndef FAY_TESTS_INTEGRATION_SAVED_EVENTS_H
#define FAY_TESTS_INTEGRATION_SAVED_EVENTS_H

#include <stdio.h>

#include "../../query/random/saved_reader.h"

#define EVENTS_MAX 60000
#define APART 100000 /* ns; the clocks of two sessions differ by less (loader/process/clock.c) */
#define UNSURE 3

struct column {
	unsigned side;                        /* of a pair: 0 left, 1 right */
	const struct fay_saved_column *is[2]; /* in both files */
};
/* Or a pair of them, with the later one's time. */
struct event {
	const uint8_t *row[2][2]; /* by side and file */
	int64_t thread;
	uint64_t time[2]; /* least and most */
	size_t number;    /* in the order of time */
};
struct range {
	double least, most;
};

struct condition {
	struct column column;
	char operator[4];
	const char *operand;
};

extern struct event events[EVENTS_MAX]; /* in the order of time */
extern size_t event_count;

/* FIRST LAST STREAM and, of pairs, the words that say which; returns how many of the words, up to
 * NULL, these are. */
int read_saved(const char *first, const char *last, const char *which, char **words);
void fail(int code, const char *what, const char *which);
struct column find_column(const char *name);
int64_t number(const struct column *c, const struct event *e, unsigned file);
/* Of a duration: what a session between the two may have seen. */
struct range range_of(const struct column *c, const struct event *e);
bool is_duration(const struct column *c);
/* As JSON has it, or without quotation marks. */
void print_value(FILE *out, const struct column *column, const struct event *e, bool quoted);
/* Of "COLUMN:OPERATOR:OPERAND", to which it refers. */
struct condition make_condition(char *text);
bool holds(const struct condition *c, const struct event *e);
/* Only events for which it holds stay. */
void select_events(const struct condition *c);
/* Ends the process if it is not sure that a came before b. */
void require_order(const struct event *a, const struct event *b);

#endif
