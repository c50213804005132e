/* SPDX-License-Identifier: MIT */
/*
 * Random streams of events in saved traces: written as `fay trace --save` writes them (its query's
 * verified probes, the product's writer), read back by a plain reader (saved_reader.h). There are
 * several ways to save: whole events, columns under names of their own, two sources in one file,
 * ends of calls, system calls, a trace that was killed.
 */
#ifndef FAY_TESTS_QUERY_SAVED_TRACE_H
#define FAY_TESTS_QUERY_SAVED_TRACE_H

#include "tests/query/reference/reference.h"
#include "tests/query/running.h"

#include "fay/verify.h"

struct saved_trace;

/* How many ways there are. */
extern const unsigned saved_trace_forms;
struct saved_trace *saved_trace_create(unsigned form);
void saved_trace_destroy(struct saved_trace *trace);
/* The saved events as a source, and what they have. */
const char *saved_trace_source(const struct saved_trace *trace);
unsigned saved_trace_have(const struct saved_trace *trace);
/* A query about events `x`, with the names that their columns have in the file; malloc'ed. */
char *saved_trace_question(const struct saved_trace *trace, const char *text);
/* Events with one of these flags take no part in the question. */
unsigned saved_trace_without(const struct saved_trace *trace, const char *question);
/* Makes the file anew, of random events. Other sources of the trace get events of their own. */
void saved_trace_write(struct saved_trace *trace);
/* The events in the file that its source names, in its order. The test fails if they are not those
 * that were written. */
void saved_trace_read(const struct saved_trace *trace, struct stream *stream);

/* The plan's probes as the verifier accepted them; to be given to fay_verdict_deinit(). */
void saved_trace_verify(const struct fay_plan *plan, struct fay_verdict *verdict);

#endif
