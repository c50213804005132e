/* SPDX-License-Identifier: MIT */
/* libfay_trace: a trace that its owner drives, step by step. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer.h"

/* Tracers of several threads take turns: there is one keeper of stopped processes at a time, and
 * one measured clock (loader/stop, loader/process). */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* --- output: rows and messages become calls --- */

static int check(void *context, struct fay_error *error)
{
	const struct fay_tracer *tracer = context;
	return tracer->no_memory ? fay_error_set(error, FAY_E_LIMIT, "out of memory for a row")
				 : FAY_OK;
}

static int open_output(void *context, struct trace *trace, struct fay_error *error)
{
	return FAY_OK;
}

static void schema(void *context, const struct trace *trace)
{
}

static void begin(void *context, size_t views, bool final)
{
	struct fay_tracer *tracer = context;
	tracer->pictures += views > 0;
}

static void end(void *context)
{
}

static void result(void *context, const struct fay_view *view, const struct fay_result *rows,
		   bool final)
{
	struct fay_tracer *tracer = context;
	for (size_t i = 0; i < rows->row_count; i++)
		fay_tracer_row(tracer, view, rows->rows + i * rows->row_size, tracer->pictures,
			       final, false);
}

static void row(void *context, const struct fay_view *view, const uint8_t *bytes, bool revised)
{
	fay_tracer_row(context, view, bytes, 0, false, revised);
}

static bool due(void *context, bool over)
{
	return false;
}

static void tell(struct fay_tracer *tracer)
{
	const char *text = tracer->line;
	tracer->line[tracer->line_size] = 0;
	tracer->line_size = 0;
	if (tracer->options.message)
		tracer->options.message(tracer->options.context,
					strncmp(text, "fay: ", 5) ? text : text + 5);
}

/* Of a stream whose lines are messages. */
static ssize_t write_message(void *context, const char *bytes, size_t size)
{
	struct fay_tracer *tracer = context;
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\n' || tracer->line_size + 1 == sizeof(tracer->line))
			tell(tracer);
		if (bytes[i] != '\n')
			tracer->line[tracer->line_size++] = bytes[i];
	}
	return (ssize_t)size;
}

/* --- life --- */

static int take_options(struct fay_tracer *tracer, const char *query,
			const struct fay_tracer_options *given, struct fay_error *error)
{
	struct trace *trace = &tracer->trace;
	struct fay_tracer_options *options = &tracer->options;
	if (!given || given->size != sizeof(*given))
		return fay_error_set(error, FAY_E_USAGE,
				     "options of another size than this library's");
	*options = *given;
	if (options->pid_count > FAY_TARGETS_MAX || options->comm_count > TRACE_COMMS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "more than %u processes or %u names",
				     FAY_TARGETS_MAX, TRACE_COMMS_MAX);
	if (options->command && (options->pid_count || options->comm_count))
		return fay_error_set(error, FAY_E_USAGE,
				     "either running processes or a command, not both");
	if (!(options->budget >= 0 && options->budget <= 1))
		return fay_error_set(error, FAY_E_USAGE, "a budget is a share between 0 and 1");
	trace->query = query;
	trace->command = (char **)options->command;
	trace->policy_path = options->policy_path;
	trace->duration = options->duration_ns;
	trace->every = options->every_ns;
	trace->budget = options->budget;
	trace->unbounded = options->budget <= 0;
	trace->budget_given = true;
	for (size_t i = 0; i < options->pid_count; i++)
		trace->pids[trace->pid_count++] = options->pids[i];
	for (size_t i = 0; i < options->comm_count; i++)
		trace->comms[trace->comm_count++] = options->comms[i];
	return FAY_OK;
}

/* A tick each FAY_TRACE_POLL_MS. */
static int start_timer(struct fay_tracer *tracer, struct fay_error *error)
{
	const struct timespec tick = { .tv_nsec = FAY_TRACE_POLL_MS * 1000000 };
	const struct itimerspec ticks = { tick, tick };
	tracer->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (tracer->timer < 0 || timerfd_settime(tracer->timer, 0, &ticks, NULL))
		return fay_error_set(error, FAY_E_INTERNAL, "no timer: %s", strerror(errno));
	return FAY_OK;
}

static void set_reader(void)
{
	fay_names_read_by(fay_demangled_matches);
}

static int prepare(struct fay_tracer *tracer, struct fay_error *error)
{
	struct trace *trace = &tracer->trace;
	int code = fay_trace_prepare(trace, error);
	if (!code && !fay_trace_is_file(trace))
		code = fay_trace_begin(trace, error);
	if (code && trace->child) {
		kill(trace->child, SIGKILL); /* it has done nothing yet */
		waitpid(trace->child, NULL, 0);
	}
	tracer->begun = !code;
	return code;
}

int fay_tracer_open(const char *query, const struct fay_tracer_options *options,
		    struct fay_tracer **tracer, struct fay_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct trace_output output = { NULL,   open_output, schema, begin, end,
					     result, row,         check,  due,   false };
	struct fay_error own = { 0 };
	struct fay_tracer *made = calloc(1, sizeof(*made));
	FILE *messages = NULL;
	*tracer = NULL;
	pthread_once(&once, set_reader);
	if (made)
		messages =
			fopencookie(made, "w", (cookie_io_functions_t){ .write = write_message });
	if (!messages) {
		free(made);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	*tracer = made; /* for fay_tracer_stop() */
	setvbuf(messages, NULL, _IOLBF, BUFSIZ);
	made->timer = -1;
	fay_trace_init(&made->trace, &output, messages);
	made->trace.output.context = made;
	int code = take_options(made, query, options, &own);
	if (!code)
		code = start_timer(made, &own);
	if (!code) {
		pthread_mutex_lock(&turn);
		code = prepare(made, &own);
		pthread_mutex_unlock(&turn);
	}
	if (code) {
		if (error)
			*error = own;
		*tracer = NULL;
		fay_tracer_close(made);
		return code;
	}
	return FAY_OK;
}

size_t fay_tracer_results(const struct fay_tracer *tracer)
{
	return tracer->trace.view_count;
}

size_t fay_tracer_columns(const struct fay_tracer *tracer, size_t result)
{
	return result < tracer->trace.view_count ? tracer->trace.views[result].column_count : 0;
}

const char *fay_tracer_column(const struct fay_tracer *tracer, size_t result, size_t index)
{
	return index < fay_tracer_columns(tracer, result)
		       ? tracer->trace.views[result].columns[index].name
		       : NULL;
}

int fay_tracer_fd(const struct fay_tracer *tracer)
{
	return tracer->timer;
}

/* Of saved traces all is done in one. */
static int step(struct fay_tracer *tracer, int wait_ms, struct fay_error *error)
{
	struct trace *trace = &tracer->trace;
	struct fay_error own = { 0 };
	int code;
	if (tracer->finished || trace->end_reason)
		return FAY_OK;
	pthread_mutex_lock(&turn);
	tracer->finished = fay_trace_is_file(trace);
	code = tracer->finished ? fay_trace_file(trace, &own)
				: fay_trace_step(trace, wait_ms, &own);
	pthread_mutex_unlock(&turn);
	if (code && error)
		*error = own;
	return code;
}

int fay_tracer_wait(struct fay_tracer *tracer, const uint32_t *word, uint32_t seen,
		    struct fay_error *error)
{
	tracer->trace.also = word;
	tracer->trace.also_seen = seen;
	return step(tracer, fay_trace_calm_ms(&tracer->trace), error);
}

int fay_tracer_step(struct fay_tracer *tracer, int timeout_ms, struct fay_error *error)
{
	struct pollfd ready = { .fd = tracer->timer, .events = POLLIN };
	uint64_t ticks;
	if (tracer->finished || tracer->trace.end_reason)
		return FAY_OK;
	if (poll(&ready, 1, timeout_ms) > 0 && read(tracer->timer, &ticks, sizeof(ticks)) < 0)
		ticks = 0; /* another reader was first */
	return step(tracer, 0, error);
}

const char *fay_tracer_over(const struct fay_tracer *tracer)
{
	return tracer->trace.end_reason;
}

void fay_tracer_stop(struct fay_tracer *tracer)
{
	tracer->trace.interrupted = SIGINT;
}

pid_t fay_tracer_command(const struct fay_tracer *tracer)
{
	return tracer->trace.child;
}

static void fill(const struct fay_tracer *tracer, const struct fay_result *merged,
		 struct fay_tracer_statistics *statistics)
{
	*statistics = (struct fay_tracer_statistics){
		.size = sizeof(*statistics),
		.rows = tracer->rows,
		.threads = merged->threads,
		.lost_reentrant = merged->events_lost_reentrant,
		.lost_full = merged->events_lost_full,
		.lost_no_slot = merged->events_lost_no_slot,
		.lost_calls = merged->calls_lost,
		.late = tracer->trace.events_late,
	};
}

static int finish(struct fay_tracer *tracer, struct fay_error *error)
{
	struct trace *trace = &tracer->trace;
	if (tracer->finished || !tracer->begun)
		return FAY_OK;
	tracer->finished = true;
	if (!trace->end_reason)
		trace->end_reason = "closed";
	return fay_trace_is_file(trace) ? FAY_OK : fay_trace_end(trace, FAY_OK, error);
}

int fay_tracer_finish(struct fay_tracer *tracer, struct fay_error *error)
{
	struct fay_error own = { 0 };
	pthread_mutex_lock(&turn);
	int code = finish(tracer, &own);
	pthread_mutex_unlock(&turn);
	if (code && error)
		*error = own;
	return code;
}

int fay_tracer_statistics(struct fay_tracer *tracer, struct fay_tracer_statistics *statistics,
			  struct fay_error *error)
{
	struct fay_error own = { 0 };
	struct trace *trace = &tracer->trace;
	struct fay_result merged;
	if (statistics->size != sizeof(*statistics))
		return fay_error_set(error, FAY_E_USAGE,
				     "statistics of another size than this library's");
	pthread_mutex_lock(&turn);
	int code = fay_trace_snapshot(trace, trace->views[0].state, &merged, &own);
	pthread_mutex_unlock(&turn);
	if (code) {
		if (error)
			*error = own;
		return code;
	}
	fill(tracer, &merged, statistics);
	fay_result_deinit(&merged);
	return FAY_OK;
}

void fay_tracer_close(struct fay_tracer *tracer)
{
	struct fay_error error;
	if (!tracer)
		return;
	pthread_mutex_lock(&turn);
	finish(tracer, &error);
	fay_trace_deinit(&tracer->trace);
	pthread_mutex_unlock(&turn);
	fclose(tracer->trace.messages);
	if (tracer->timer >= 0)
		close(tracer->timer);
	fay_tracer_row_deinit(tracer);
	free(tracer);
}
