/* SPDX-License-Identifier: MIT */
/* A query that runs as a BPF program over system calls which a child makes as it is told. */
#ifndef FAY_TESTS_QUERY_KERNEL_STREAM_H
#define FAY_TESTS_QUERY_KERNEL_STREAM_H

#include "tests/query/running.h"

#include "fay/aggregator.h"

#include <sys/types.h>

struct kernel_stream;

/* Why such queries cannot run here; NULL: they can. */
const char *kernel_stream_refused(void);
/* One of the processors that the child may run on, by any number. */
unsigned kernel_stream_processor(unsigned n);
/* Attaches the query to a child of its own; the test fails if that is refused. */
struct kernel_stream *kernel_stream_start(const char *text);
const struct fay_plan *kernel_stream_plan(const struct kernel_stream *stream);
pid_t kernel_stream_child(const struct kernel_stream *stream);
/*
 * The child makes these calls: `function`, read or write, with the arguments, under the name and on
 * the processor that the event has. Of its files the first three are /dev/null, so that some
 * succeed; it says what each has returned: the event's `retval`, and EVENT_FAILED.
 */
void kernel_stream_make(struct kernel_stream *stream, struct fay_event *events, unsigned count);
/* All merged rows so far, or rows of events. *merged is the caller's. */
void kernel_stream_take(struct kernel_stream *stream, struct fay_result *merged);
void kernel_stream_end(struct kernel_stream *stream);

#endif
