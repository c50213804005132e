/* SPDX-License-Identifier: MIT */
/* Random events of a program, and a query's probes over them. */
#ifndef FAY_TESTS_QUERY_STREAMS_H
#define FAY_TESTS_QUERY_STREAMS_H

#include "reference.h"

/* What a random query is about. */
struct source {
	const char *text;
	unsigned have; /* what its events have; HAS_RESULT without HAS_ARGUMENTS: a query's own arguments make none known */
	bool ends;     /* calls, as they end: some by exceptions, some begun before the trace */
	bool called;   /* events are at a function's first instruction */
};
extern const struct source program_sources[];
extern const size_t program_source_count;

void random_stream(const struct source *source, struct stream *stream);
/* Runs the query's probes over the events, of two threads one behind the other. *merged: as check_answer() takes it; the caller's. */
void run_stream(struct running *r, const struct source *source, const struct stream *stream, struct fay_result *merged);

#endif
