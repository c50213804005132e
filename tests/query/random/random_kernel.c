/* SPDX-License-Identifier: MIT */
#include "random_kernel.h"

#include "kernel_stream.h"
#include "tests/query/reference/answers.h"
#include "tests/query/reference/shares.h"

/* of what the child calls these are `read` and `write` */
#define SOURCE "cluster.Syscall(\"[rw]*e*\")"
#define PREFIXES 25

/* A query whose answer does not hang on when exactly something was called. */
static char *random_kernel_shape(struct shape *s)
{
	for (;;) {
		random_shape(s);
		s->step = s->width = 0;
		char *text = text_of_shape(s, SOURCE);
		if (!strstr(text, "x.time"))
			return text;
		free(text);
		free_shape(s);
	}
}

/* Events as the child will make them, in the order of time. */
static void random_calls(struct fay_event *events, pid_t child)
{
	unsigned cpu = kernel_stream_processor(0);
	for (unsigned i = 0; i < MAX_EVENTS; i++) {
		struct fay_event *e = &events[i];
		random_event(e);
		e->time = NOW + i;
		e->pid = e->tid = (uint32_t)child;
		cpu = below(16) ? cpu : kernel_stream_processor(below(64));
		e->cpu = cpu;
		if (below(2))
			e->arg[0] = below(5);
	}
}

static void check_prefixes(const struct shape *shape, const char *text)
{
	static struct stream stream;
	struct kernel_stream *kernel = kernel_stream_start(text);
	struct asked asked = { shape, text, kernel_stream_plan(kernel), &stream };
	random_calls(stream.events, kernel_stream_child(kernel));
	stream.count = 0;
	for (unsigned i = 0; i < PREFIXES; i++) {
		struct fay_result merged;
		unsigned more = 1 + below(MAX_EVENTS / PREFIXES);
		kernel_stream_make(kernel, stream.events + stream.count, more);
		stream.count += more;
		kernel_stream_take(kernel, &merged);
		check_answer(&asked, &merged);
		fay_result_deinit(&merged);
	}
	kernel_stream_end(kernel);
}

unsigned run_kernel_queries(unsigned queries)
{
	events_have = HAS_ARGUMENTS | HAS_RESULT | HAS_FAILED;
	for (unsigned q = 0; q < queries; q++) {
		struct shape shape;
		char *text = random_kernel_shape(&shape);
		check_prefixes(&shape, text);
		count_operators(text, PREFIXES);
		free(text);
		free_shape(&shape);
	}
	return queries * PREFIXES;
}
