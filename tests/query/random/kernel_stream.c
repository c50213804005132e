/* SPDX-License-Identifier: MIT */
#include "kernel_stream.h"

#include "fay/bpf.h"
#include "tests/query/reference/trees.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX 512

struct kernel_stream {
	struct fay_plan *plan;
	struct fay_schema schema;
	struct fay_bpf_object object;
	struct fay_bpf_session *session;
	struct fay_aggregator *aggregator;
	pid_t child;
	struct orders {
		unsigned count;
		struct fay_event calls[CALLS_MAX];
	} *orders;     /* shared with the child */
	uint8_t *rows; /* of events, as they came */
	size_t row_count;
};

unsigned kernel_stream_processor(unsigned n)
{
	cpu_set_t allowed;
	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	n %= (unsigned)CPU_COUNT(&allowed);
	for (unsigned cpu = 0;; cpu++)
		if (CPU_ISSET(cpu, &allowed) && n-- == 0)
			return cpu;
}

const char *kernel_stream_refused(void)
{
	static struct fay_error error;
	struct fay_plan *plan;
	struct fay_bpf_object object = { 0 };
	struct fay_bpf_session *session = NULL;
	if (!fay_bpf_knows_processes())
		return "in a PID namespace the kernel's events have other process numbers";
	if (fay_query_plan("cluster.Syscall(\"read\").Count()", NOW, &plan, &error))
		return error.message;
	int result = fay_plan_generate_bpf(plan, &(struct fay_bpf_options){ .not_self = true },
					   &object, &error);
	if (!result)
		result = fay_bpf_session_create(&object, &session, &error);
	if (!result)
		result = fay_bpf_session_attach(session, &error);
	fay_bpf_session_destroy(session);
	fay_bpf_object_deinit(&object);
	fay_plan_destroy(plan);
	return result ? error.message : NULL;
}

/* Reads and writes return at once, whatever their arguments are. */
static void obey(struct orders *orders)
{
	close_range(0, ~0u, 0);
	for (unsigned i = 0; i < 3; i++)
		open("/dev/null", O_RDWR);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP);
		for (unsigned i = 0; i < orders->count; i++) {
			struct fay_event *e = &orders->calls[i];
			cpu_set_t processors;
			CPU_ZERO(&processors);
			CPU_SET(e->cpu, &processors);
			if (!i || e[-1].cpu != e->cpu)
				sched_setaffinity(0, sizeof(processors), &processors);
			prctl(PR_SET_NAME, e->comm);
			long result = syscall(
				e->function == fay_name_hash("read") ? SYS_read : SYS_write,
				e->arg[0], e->arg[1], e->arg[2], e->arg[3], e->arg[4], e->arg[5]);
			e->retval = (uint64_t)(result == -1 ? -errno : result);
			e->reserved = result == -1 ? EVENT_FAILED : 0;
		}
	}
}

static void wait_for_child(const struct kernel_stream *stream)
{
	int status;
	assert_int_equal(waitpid(stream->child, &status, WUNTRACED), stream->child);
	assert_true(WIFSTOPPED(status));
}

static void start_child(struct kernel_stream *stream)
{
	stream->orders = mmap(NULL, sizeof(*stream->orders), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(stream->orders != MAP_FAILED);
	stream->child = fork();
	assert_true(stream->child >= 0);
	if (!stream->child)
		obey(stream->orders);
	wait_for_child(stream);
}

static bool take_event(void *context, const uint8_t *row, size_t size)
{
	struct kernel_stream *stream = context;
	struct fay_error error = { 0 };
	assert_int_equal(fay_aggregator_take_row(stream->aggregator, 0, row, &error), 0);
	return true;
}

static void keep_row(void *context, uint32_t state, const uint8_t *row)
{
	struct kernel_stream *stream = context;
	size_t size = stream->object.row_size;
	stream->rows = realloc(stream->rows, (stream->row_count + 1) * size);
	assert_non_null(stream->rows);
	memcpy(stream->rows + stream->row_count++ * size, row, size);
}

static void attach(struct kernel_stream *stream, const char *text)
{
	struct fay_error error = { 0 };
	size_t size;
	struct fay_bpf_options options = { .not_self = true,
					   .pids = &stream->child,
					   .pid_count = 1 };
	if (fay_plan_generate_bpf(stream->plan, &options, &stream->object, &error) ||
	    fay_bpf_session_create(&stream->object, &stream->session, &error))
		fail_msg("%s\n%s", text, error.message);
	struct fay_shm_control *shm = fay_bpf_session_shm(stream->session, &size);
	assert_int_equal(fay_aggregator_add(stream->aggregator, shm, size, 0, &error), 0);
	if (fay_bpf_session_attach(stream->session, &error))
		fail_msg("%s\n%s", text, error.message);
}

struct kernel_stream *kernel_stream_start(const char *text)
{
	struct kernel_stream *stream = calloc(1, sizeof(*stream));
	struct fay_error error = { 0 };
	assert_non_null(stream);
	if (fay_query_plan(text, NOW, &stream->plan, &error))
		fail_msg("%s\n%s", text, error.message);
	if (stream->plan->window_events)
		fay_plan_sources_schema(stream->plan, &stream->schema);
	else
		fay_plan_schema(stream->plan, &stream->schema);
	assert_int_equal(fay_aggregator_create(&stream->schema, &stream->aggregator, &error), 0);
	fay_aggregator_on_row(stream->aggregator, keep_row, stream);
	start_child(stream);
	attach(stream, text);
	return stream;
}

const struct fay_plan *kernel_stream_plan(const struct kernel_stream *stream)
{
	return stream->plan;
}

pid_t kernel_stream_child(const struct kernel_stream *stream)
{
	return stream->child;
}

void kernel_stream_make(struct kernel_stream *stream, struct fay_event *events, unsigned count)
{
	assert_true(count <= CALLS_MAX);
	stream->orders->count = count;
	memcpy(stream->orders->calls, events, count * sizeof(*events));
	kill(stream->child, SIGCONT);
	wait_for_child(stream);
	memcpy(events, stream->orders->calls, count * sizeof(*events));
}

void kernel_stream_take(struct kernel_stream *stream, struct fay_result *merged)
{
	struct fay_error error = { 0 };
	fay_bpf_session_drain(stream->session, take_event, stream);
	assert_int_equal(fay_aggregator_snapshot(stream->aggregator, 0, merged, &error), 0);
	assert_int_equal(merged->events_lost_reentrant + merged->events_lost_full +
				 merged->events_lost_no_slot,
			 0);
	if (!stream->plan->streams && !stream->plan->window_events)
		return;
	fay_result_deinit(merged);
	*merged = (struct fay_result){ .row_size = stream->object.row_size,
				       .row_count = stream->row_count };
	merged->rows = malloc(stream->row_count * merged->row_size + 1);
	assert_non_null(merged->rows);
	if (stream->row_count)
		memcpy(merged->rows, stream->rows, stream->row_count * merged->row_size);
}

void kernel_stream_end(struct kernel_stream *stream)
{
	kill(stream->child, SIGKILL);
	waitpid(stream->child, NULL, 0);
	munmap(stream->orders, sizeof(*stream->orders));
	fay_aggregator_destroy(stream->aggregator); /* looks at the session's memory */
	fay_bpf_session_destroy(stream->session);
	fay_bpf_object_deinit(&stream->object);
	fay_plan_destroy(stream->plan);
	free(stream->rows);
	free(stream);
}
