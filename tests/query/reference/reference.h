/* SPDX-License-Identifier: MIT */
/* The answer to a random query, by a plain reference: it keeps all events and looks at each of them
 * for each row. It shares no code with query/ and aggregator/. */
#ifndef FAY_TESTS_QUERY_REFERENCE_H
#define FAY_TESTS_QUERY_REFERENCE_H

#include "tests/query/random/shapes.h"

#define MAX_EVENTS 160
#define MAX_COLUMNS 8

/* Events in the order in which they come to the query; their times differ, and may be in another
 * order. */
struct stream {
	struct fay_event events[MAX_EVENTS];
	unsigned count;
};

struct row {
	struct cell cells[MAX_COLUMNS];
	uint64_t first, last; /* of groups: times of events */
	unsigned place;       /* of events: which one it is of */
};

struct table {
	struct row rows[MAX_EVENTS];
	size_t count;
};

/*
 * The rows that the window [start, start + width), or the one of so many events number `start`,
 * must have, in their order; without windows: all. Of CLUSTERS the last column, which cluster a
 * row's vector is in, is not there: check_clusters(). Lists in the table last until the next call.
 */
void refer(const struct shape *s, const struct stream *stream, uint64_t start, struct table *t);
/* Of windows of so many events: how many there are. */
uint64_t count_windows(const struct shape *s, const struct stream *stream);
/* The clusters of the rows, as a result has them: NULL if they may be so, else what is wrong. */
const char *check_clusters(const struct shape *s, const struct table *t, const uint64_t *clusters);

#endif
