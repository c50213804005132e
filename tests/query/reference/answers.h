/* SPDX-License-Identifier: MIT */
/* Whether what a query's probes have left comes to the rows that the reference has. */
#ifndef FAY_TESTS_QUERY_ANSWERS_H
#define FAY_TESTS_QUERY_ANSWERS_H

#include "reference.h"

/* from the first event of a stream to the last, if there are windows of time */
#define SPAN (20 * MS)

/* A query over a stream; all belong to the caller. */
struct asked {
	const struct shape *shape;
	const char *text;
	const struct fay_plan *plan;
	const struct stream *stream;
};

/* `merged`: the aggregator's rows, or where the plan streams, or counts events, the events' rows as
 * they came. The test fails if they come to something else. */
void check_answer(const struct asked *asked, struct fay_result *merged);

#endif
