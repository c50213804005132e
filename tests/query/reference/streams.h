/* SPDX-License-Identifier: MIT */
/* Random events of a program, and a query's probes over them. */
#ifndef FAY_TESTS_QUERY_STREAMS_H
#define FAY_TESTS_QUERY_STREAMS_H

#include "reference.h"

/* What a random query is about. */
struct source {
	const char *text;
	unsigned have; /* what its events have */
	/* AT_FIRST: at a function's first instruction. Calls of programs END, some by exceptions;
	 * those of the kernel END_IN_KERNEL, some with error numbers. */
	enum { AT_FIRST, ANYWHERE, END, END_IN_KERNEL } where;
};
extern const struct source program_sources[];
extern const size_t program_source_count;

void random_stream(const struct source *source, struct stream *stream);
/* Runs the query's probes over the events, of two threads one behind the other. *merged: as
 * check_answer() takes it; the caller's. */
void run_stream(struct running *r, const struct source *source, const struct stream *stream,
		struct fay_result *merged);

#endif
